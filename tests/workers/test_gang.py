"""The gang with real processes: starting, dying, ending, ports, environment, network."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.host.patience import wait_for
from tests.workers.host.samples import STANDIN, assignments, spec_with
from workers.contract.assignment import Place
from workers.gang import Gang, kill_leftovers, leftovers, plan_ports
from workers.gang.namespace import available
from workers.gang.ports import NoFreePort, PortReservation

ROOT = Path(__file__).resolve().parent.parent.parent


class Gangs:
    """Makes gangs in one run folder and ends them."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.made: list[Gang] = []

    def __call__(self, *tags: str, workers: int = 2, **options: object) -> Gang:
        gang = Gang(
            self.run, spec_with(*tags), assignments(workers), "here", module=STANDIN, **{"grace": 0.5, **options}
        )  # type: ignore[arg-type]
        self.made.append(gang)
        return gang


@pytest.fixture
def gangs(tmp_path: Path) -> Iterator[Gangs]:
    made = Gangs(tmp_path / "run")
    yield made
    for gang in made.made:
        gang.stop(grace=0)
    assert leftovers(made.run) == []


def all_exits(gang: Gang) -> dict[str, tuple[int | None, str | None]]:
    exits = {}
    deadline = time.monotonic() + 60
    while gang.running and time.monotonic() < deadline:
        exits.update({e.name: (e.code, e.signal) for e in gang.poll(timeout=0.1)})
    return exits


def test_it_runs_every_process_to_its_end(gangs: Gangs) -> None:
    gang = gangs()
    gang.start()
    assert all_exits(gang) == {"worker-0": (0, None), "worker-1": (0, None)}
    assert (gang.run / "logs/worker-1.stdout").read_text() == "worker-1 does finish\n"
    place = Place.model_validate_json((gang.run / "places/worker-1.json").read_text())
    assert place.process.name == "worker-1"
    assert not place.chief
    assert [p.port for p in place.processes] == [p.port for p in gang.processes]


def test_it_starts_only_the_processes_of_its_host(tmp_path: Path) -> None:
    elsewhere = assignments(2, hosts=("here", "there"), ports=(21001, 21002), address="192.0.2.1")
    gang = Gang(tmp_path, spec_with("worker-0:environment"), elsewhere, "here", module=STANDIN)
    gang.start()
    assert all_exits(gang) == {"worker-0": (0, None)}
    config = json.loads(json.loads((tmp_path / "worker-0.env").read_text())["TF_CONFIG"])
    assert config["cluster"] == {"worker": ["192.0.2.1:21001", "192.0.2.1:21002"]}
    gang.stop()


def test_it_tells_codes_and_signals(gangs: Gangs) -> None:
    gang = gangs("worker-0:exit:3", "worker-1:signal:9")
    gang.start()
    assert all_exits(gang) == {"worker-0": (3, None), "worker-1": (None, "SIGKILL")}


def test_it_tells_deaths_in_their_order(gangs: Gangs) -> None:
    gang = gangs("worker-0:hang", "worker-1:hang", "worker-2:hang", workers=3)
    gang.start()
    for name in ("worker-2", "worker-0", "worker-1"):
        os.kill(gang.pids[name], signal.SIGKILL)
        wait_for(lambda pid=gang.pids[name]: "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text())
    assert [exit.name for exit in gang.poll()] == ["worker-2", "worker-0", "worker-1"]


def test_it_kills_what_ignores_term_within_the_grace_and_two_seconds(gangs: Gangs) -> None:
    gang = gangs("worker-0:deaf", "worker-1:hang")
    gang.start()
    wait_for((gang.run / "worker-0.deaf").exists)
    before = time.monotonic()
    exits = {exit.name: exit.signal for exit in gang.stop()}
    assert time.monotonic() - before < gang.grace + 2
    assert exits == {"worker-0": "SIGKILL", "worker-1": "SIGTERM"}
    assert not gang.running


def test_it_ends_children_of_children_wherever_they_went(gangs: Gangs) -> None:
    gang = gangs("worker-0:family", workers=1)
    gang.start()
    wait_for((gang.run / "worker-0.family").exists)
    wait_for(lambda: len(leftovers(gang.run)) == 3, what="the process and its two children")
    gang.stop()
    assert leftovers(gang.run) == []


def test_it_takes_the_processes_along_when_it_is_killed(tmp_path: Path) -> None:
    script = f"""
import time
from pathlib import Path
from tests.workers.host.samples import STANDIN, assignments, spec_with
from workers.gang import Gang
spec = spec_with("worker-0:deaf", "worker-1:deaf")
Gang(Path({str(tmp_path)!r}), spec, assignments(2), "here", module=STANDIN).start()
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    try:
        wait_for(lambda: (tmp_path / "worker-0.deaf").exists() and (tmp_path / "worker-1.deaf").exists())
    finally:
        parent.kill()
        parent.wait()
    try:
        wait_for(lambda: leftovers(tmp_path) == [], seconds=10, what="the orphans to end")
    finally:
        kill_leftovers(tmp_path)


def test_it_keeps_the_hosts_secrets_from_training(gangs: Gangs) -> None:
    given = {**os.environ, "SECRET_KEY": "x", "DATABASE_URL": "x", "REDIS_URL": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    gang = gangs("worker-0:environment", workers=1, env=given)
    gang.start()
    assert all_exits(gang) == {"worker-0": (0, None)}
    env = json.loads((gang.run / "worker-0.env").read_text())
    assert not {"SECRET_KEY", "DATABASE_URL", "REDIS_URL", "AWS_SECRET_ACCESS_KEY", "TF_CONFIG"} & set(env)
    assert env["CUDA_VISIBLE_DEVICES"] == "-1"
    assert env["GRPC_FAIL_FAST"] == "use_caller"


def test_it_describes_the_cluster_to_each_process(gangs: Gangs) -> None:
    gang = gangs("worker-0:environment", "worker-1:environment")
    gang.start()
    assert set(all_exits(gang).values()) == {(0, None)}
    configs = [json.loads(json.loads((gang.run / f"worker-{i}.env").read_text())["TF_CONFIG"]) for i in (0, 1)]
    addresses = [f"127.0.0.1:{process.port}" for process in gang.processes]
    assert len(set(addresses)) == 2
    assert configs[0]["cluster"] == configs[1]["cluster"] == {"worker": addresses}
    assert [config["task"] for config in configs] == [{"type": "worker", "index": i} for i in (0, 1)]


@pytest.mark.skipif(not available(), reason="this system allows no network namespaces")
def test_it_gives_a_cluster_of_one_host_a_network_of_its_own(gangs: Gangs) -> None:
    gang = gangs("worker-0:interfaces", "worker-1:interfaces")
    gang.start()
    assert set(all_exits(gang).values()) == {(0, None)}
    spaces = {(gang.run / f"worker-{i}.ns").read_text() for i in (0, 1)}
    assert len(spaces) == 1
    assert spaces != {os.readlink("/proc/self/ns/net")}
    devices = [line.split(":")[0].strip() for line in (gang.run / "worker-0.net").read_text().splitlines()[2:]]
    assert "eth0" not in devices
    assert "lo" in devices


def test_it_leaves_the_network_alone_when_told_to(gangs: Gangs) -> None:
    gang = gangs("worker-0:interfaces", "worker-1:interfaces", isolate="off")
    gang.start()
    assert set(all_exits(gang).values()) == {(0, None)}
    assert (gang.run / "worker-0.ns").read_text() == os.readlink("/proc/self/ns/net")


def test_it_leaves_the_network_to_a_job_that_must_download_its_dataset(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "KERAS_HOME": str(tmp_path)}
    spec = spec_with().model_copy(update={"dataset": spec_with().dataset.model_copy(update={"name": "mnist"})})
    gang = Gang(tmp_path, spec, assignments(2), "here", env=env)
    assert not gang.isolated
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets/mnist.npz").touch()
    assert gang.isolated == available()


def test_it_picks_free_ports_that_no_other_gang_picks() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(NoFreePort, match="LOCKSTEP_PORT_RANGE"):
            PortReservation().take(port, port)
    first, second = PortReservation(), PortReservation()
    plan_ports(assignments(2), first, (24000, 24001))
    with pytest.raises(NoFreePort):
        plan_ports(assignments(2), second, (24000, 24001))
    first.close()
    assert {process.port for process in plan_ports(assignments(2), second, (24000, 24001))} == {24000, 24001}
    second.close()
