"""Each command of docker-compose.yml, by hand against a real PostgreSQL and a real Redis, does the main job."""

from __future__ import annotations

import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.house import ROOT, House, free_port
from tests.waiting import wait_for

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SPEC = """
version: lockstep/v1
name: in production
dataset: {name: digits}
model: {name: linear}
strategy: {name: one_device}
training: {epochs: 10, global_batch: 64, optimizer: {name: sgd, learning_rate: 0.1}}
"""


class Postgres:
    """A private cluster on a free port of loopback."""

    def __init__(self) -> None:
        self.port = free_port()
        self.data = Path(tempfile.mkdtemp(prefix="lockstep-postgres-"))
        self._as: list[str] = []
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(self.data, "postgres")
            self._as = ["runuser", "-u", "postgres", "--"]
        self._run("initdb", "-D", str(self.data), "-U", "lockstep", "--auth=trust", "--no-sync")
        options = f"-p {self.port} -h 127.0.0.1 -k {self.data} -c fsync=off"
        self._run("pg_ctl", "-D", str(self.data), "-w", "-o", options, "-l", str(self.data / "log"), "start")
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "lockstep", "lockstep")

    @property
    def url(self) -> str:
        return f"postgresql://lockstep@127.0.0.1:{self.port}/lockstep"

    def end(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-w", "-m", "immediate", "stop")
        shutil.rmtree(self.data)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run([*self._as, binary(program), *arguments], check=True, capture_output=True, cwd="/")


def binary(program: str) -> str:
    found = shutil.which(program)
    paths = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{program}"))
    return found or (paths[-1] if paths else pytest.skip("PostgreSQL is not installed here"))


def command(service: str, *more: str) -> list[str]:
    """The service's command as compose would run it, in this virtual environment."""
    program, *arguments = shlex.split(COMPOSE["services"][service]["command"])
    beside = Path(sys.executable).with_name(program)
    return [str(beside) if beside.exists() else program, *arguments, *more]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    postgres = Postgres()
    redis_port = free_port()
    env = {
        "DATABASE_URL": postgres.url,
        "REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
        "HTTPS": COMPOSE["services"]["web"]["environment"]["HTTPS"].removeprefix("${HTTPS:-").rstrip("}"),
    }
    house = House(tmp_path, env=env)
    house.commands |= {name: command(name) for name in ("ingest", "control", "host")}
    # The container's port and address; the last one given counts.
    house.commands["web"] = command("web", "--host", "127.0.0.1", "--port", str(house.port))
    from webapp.embedded.redis_server import executable

    house.commands["redis"] = [executable(), *command("redis")[1:], "--port", str(redis_port), "--bind", "127.0.0.1"]
    house.commands["redis"] += ["--unixsocket", str(house.socket)]
    try:
        house.start("redis")
        subprocess.run(command("migrate"), env=house.env, cwd=ROOT, check=True, capture_output=True)
        yield house
    finally:
        house.end()
        postgres.end()


@pytest.mark.e2e
@pytest.mark.tensorflow
def test_it_does_the_main_job_on_postgresql_and_redis(house: House, tmp_path: Path) -> None:
    checked = house.manage("check", "--deploy", "--fail-level", "WARNING")
    assert "no issues" in checked.stdout
    create = "from webapp.teams.models import User; User.objects.create_user('alice', password='correct horse')"
    house.manage("shell", "-v", "0", "-c", create)
    house.manage("createteam", "vision", "--owner", "alice")
    house.start("web", "ingest", "control", "host").wait_until_ready()

    (tmp_path / "spec.yaml").write_text(SPEC)
    done = house.manage("submit", str(tmp_path / "spec.yaml"), "--wait", "--json", check=False)
    assert done.returncode == 0, done.stderr + house.log("host") + house.log("ingest")
    shown = json.loads(done.stdout)
    assert shown["state"] == "succeeded"
    assert float(shown["latest"]["val_accuracy"]) > 0.8
    logs = house.manage("logs", str(shown["id"]))
    assert logs.returncode == 0
    wait_for(lambda: house.manage("jobs", "--json").stdout.count("succeeded") >= 1, what="the list to say so")
