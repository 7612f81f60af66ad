"""Every synchronous strategy with every aggregation against TensorFlow on one device, by hand."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.workers.training.cases import CASES, cases_of
from tests.workers.training.conftest import ROOT, SCRIPT
from workers.contract.assignment import Place
from workers.contract.keeping import Checkpoint
from workers.contract.spec import parse
from workers.gang import plan_ports
from workers.gang.environment import environment
from workers.training.checkpointing.checkpoints import FOLDER
from workers.training.here import place_here

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(1800)]
IN_ONE_PROCESS: dict[str, dict[str, Any]] = {
    "one_device": {"name": "one_device"},
    "mirrored 3": {"name": "mirrored", "options": {"devices": 3, "device_type": "cpu"}},
    "hierarchical 2": {
        "name": "mirrored",
        "options": {
            "devices": 2,
            "device_type": "cpu",
            "cross_device_ops": "hierarchical_copy",
            "bytes_per_pack": 1024,
        },
    },
    "central_storage 2": {"name": "central_storage", "options": {"devices": 2, "device_type": "cpu"}},
    "mesh 2x2": {"name": "model_parallel", "options": {"mesh": {"batch": 2, "model": 2}, "device_type": "cpu"}},
}
TWO_WORKERS: dict[str, Any] = {
    "name": "multi_worker_mirrored",
    "options": {"workers": 2, "device_type": "cpu", "bytes_per_pack": 4096, "timeout_seconds": 120},
}
CHIEFS = [(strategy, case) for strategy in (*IN_ONE_PROCESS, "worker-0") for case in cases_of(strategy)]


def places(strategy: dict[str, Any], folder: Path, case: str = "mean") -> list[Place]:
    spec = parse({**CASES[case], "strategy": strategy})
    planned = plan_ports(place_here(spec))
    return [Place(spec=spec, process=each, processes=planned, run=str(folder)) for each in planned]


def start(places: dict[str, Place], folder: Path, found: Path, script: str = "exactness.py") -> subprocess.Popen[str]:
    given = json.dumps({name: place.model_dump(mode="json") for name, place in places.items()})
    one = next(iter(places.values()))
    env = environment(one.process, one.processes, folder, os.environ)
    command = [*SCRIPT, script, str(found), given]
    with (folder / f"{one.process.name}.log").open("w") as log:
        return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=log, text=True)


def answer(process: subprocess.Popen[str], folder: Path) -> dict[str, Any]:
    try:
        out, _ = process.communicate(timeout=900)
    finally:
        process.kill()
    assert process.returncode == 0, "\n".join(log.read_text()[-4000:] for log in folder.glob("*.log"))
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def found_by_hand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Filled by whichever process needs it first."""
    return tmp_path_factory.mktemp("by-hand")


@pytest.fixture(scope="module")
def distances(tmp_path_factory: pytest.TempPathFactory, found_by_hand: Path) -> dict[str, dict[str, float]]:
    """Found by four processes that are each started once."""
    folder = tmp_path_factory.mktemp("together")
    alone = {name: places(strategy, folder)[0] for name, strategy in IN_ONE_PROCESS.items()}
    # DTensor's collectives and those of other strategies get in one another's way within a process.
    mesh = {name: alone.pop(name) for name in list(alone) if name.startswith("mesh")}
    found = [answer(start(each, folder, found_by_hand), folder) for each in (alone, mesh)]
    pair = tmp_path_factory.mktemp("pair")
    gang = [{place.process.name: place} for place in places(TWO_WORKERS, pair)]
    return found[0] | found[1] | answers(gang, pair, found_by_hand)


def answers(gang: list[dict[str, Place]], folder: Path, by_hand: Path, script: str = "exactness.py") -> dict[str, Any]:
    """What all processes of a job say, each started with its places."""
    found: dict[str, Any] = {}
    running = []
    try:
        for places in gang:
            running.append(start(places, folder, by_hand, script))
        for process in running:
            found |= answer(process, folder)
    finally:
        for process in running:
            process.kill()
    return found


@pytest.fixture(scope="module")
def mesh_pair(tmp_path_factory: pytest.TempPathFactory, found_by_hand: Path) -> dict[str, Any]:
    """Two processes with a device each: a model split over both, which then goes on whole on each."""
    folder = tmp_path_factory.mktemp("meshes")
    gang = []
    meshes = [places(mesh_of(*shape), folder, "weighted") for shape in ((1, 2), (2, 1))]
    for columns, rows in zip(*meshes, strict=True):
        spec = columns.spec.model_copy(update={"checkpoint": Checkpoint(every_steps=10, keep=2)})
        first = columns.model_copy(update={"spec": spec, "run": str(folder / "first")})
        # The cluster of the first, and a checkpoint that it writes.
        again = {"run": str(folder / "second"), "resume": str(folder / "first" / FOLDER / "step-10")}
        gang.append({"first": first, "second": rows.model_copy(update=again)})
    return answers(gang, folder, found_by_hand, "mesh_pair.py")


def mesh_of(rows: int, columns: int) -> dict[str, Any]:
    options = {"mesh": {"batch": rows, "model": columns}, "processes": 2, "device_type": "cpu"}
    return {"name": "model_parallel", "options": options}


@pytest.mark.parametrize("worker", ["worker-0", "worker-1"])
@pytest.mark.parametrize("mesh", ["first", "second"])
def test_it_ends_with_the_weights_of_one_device_on_a_mesh_of_two_processes(
    mesh: str, worker: str, mesh_pair: dict[str, Any]
) -> None:
    assert mesh_pair[worker][mesh]["weights"] < 1e-5


@pytest.mark.parametrize("mesh", ["first", "second"])
def test_it_evaluates_as_keras_does_on_a_mesh_of_two_processes(mesh: str, mesh_pair: dict[str, Any]) -> None:
    assert mesh_pair["worker-0"][mesh]["evaluation"] < 1e-6


def test_it_splits_a_copy_over_processes_and_tells_the_devices_of_both(mesh_pair: dict[str, Any]) -> None:
    chief, worker = mesh_pair["worker-0"], mesh_pair["worker-1"]
    assert chief["first"]["bytes"] == worker["first"]["bytes"]
    assert chief["first"]["bytes"][0] < 0.6 * chief["second"]["bytes"][0]
    assert chief["first"]["told"] == [[0, "worker-0", "cpu:0"], [0, "worker-1", "cpu:1"]]
    assert chief["second"]["told"] == [[0, "worker-0", "cpu:0"], [1, "worker-1", "cpu:1"]]


def test_processes_of_a_mesh_decide_together(mesh_pair: dict[str, Any]) -> None:
    for one in mesh_pair.values():
        assert (one["agreed"], one["sum"]) == ([True, False], [3.0])


@pytest.mark.parametrize(("strategy", "case"), [*CHIEFS, *(("worker-1", case) for case in cases_of("worker-1"))])
def test_it_ends_with_the_weights_of_one_device(
    strategy: str, case: str, distances: dict[str, dict[str, float]]
) -> None:
    assert distances[f"{strategy}, {case}"]["weights"] < 1e-5


@pytest.mark.parametrize(("strategy", "case"), CHIEFS)
def test_it_tells_the_loss_of_every_step(strategy: str, case: str, distances: dict[str, dict[str, float]]) -> None:
    assert distances[f"{strategy}, {case}"]["losses"] < 2e-5


@pytest.mark.parametrize(("strategy", "case"), CHIEFS)
def test_it_evaluates_as_keras_does(strategy: str, case: str, distances: dict[str, dict[str, float]]) -> None:
    assert distances[f"{strategy}, {case}"]["evaluation"] < 1e-6
