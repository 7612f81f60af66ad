"""Every synchronous strategy with every aggregation against TensorFlow on one device, by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.workers.training.cases import CASES
from tests.workers.training.conftest import ROOT
from workers.contract.assignment import Place
from workers.contract.spec import parse
from workers.gang import plan_ports
from workers.gang.environment import environment
from workers.training.here import place_here

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]
IN_ONE_PROCESS: dict[str, dict[str, Any]] = {
    "one_device": {"name": "one_device"},
    "mirrored 3": {"name": "mirrored", "options": {"devices": 3, "device_type": "cpu"}},
    "hierarchical 2": {
        "name": "mirrored",
        "options": {"devices": 2, "device_type": "cpu", "cross_device_ops": "hierarchical_copy"},
    },
    "central_storage 3": {"name": "central_storage", "options": {"devices": 3, "device_type": "cpu"}},
}
TWO_WORKERS: dict[str, Any] = {"name": "multi_worker_mirrored", "options": {"workers": 2, "device_type": "cpu"}}


def places(strategy: dict[str, Any], folder: Path) -> list[Place]:
    spec = parse({**CASES["mean"], "strategy": strategy})
    planned = plan_ports(place_here(spec))
    return [Place(spec=spec, process=each, processes=planned, run=str(folder)) for each in planned]


def start(places: dict[str, Place], folder: Path) -> subprocess.Popen[str]:
    given = json.dumps({name: place.model_dump(mode="json") for name, place in places.items()})
    script = str(Path(__file__).with_name("exactness.py"))
    one = next(iter(places.values()))
    env = environment(one.process, one.processes, folder, os.environ) | {"PYTHONPATH": str(ROOT)}
    with (folder / f"{one.process.name}.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, script, given], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=log, text=True
        )


def answer(process: subprocess.Popen[str], folder: Path) -> dict[str, dict[str, float]]:
    try:
        out, _ = process.communicate(timeout=400)
    finally:
        process.kill()
    assert process.returncode == 0, "\n".join(log.read_text()[-4000:] for log in folder.glob("*.log"))
    found: dict[str, dict[str, float]] = json.loads(out.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def distances(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """Found by three processes that are each started once."""
    folder = tmp_path_factory.mktemp("together")
    alone = {name: places(strategy, folder)[0] for name, strategy in IN_ONE_PROCESS.items()}
    found = answer(start(alone, folder), folder)
    pair = tmp_path_factory.mktemp("pair")
    running = []
    try:
        for place in places(TWO_WORKERS, pair):
            running.append(start({place.process.name: place}, pair))
        for process in running:
            found |= answer(process, pair)
    finally:
        for process in running:
            process.kill()
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strategy", [*IN_ONE_PROCESS, "worker-0", "worker-1"])
def test_it_ends_with_the_weights_of_one_device(
    strategy: str, case: str, distances: dict[str, dict[str, float]]
) -> None:
    assert distances[f"{strategy}, {case}"]["weights"] < 1e-5


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strategy", [*IN_ONE_PROCESS, "worker-0"])
def test_it_evaluates_as_keras_does(strategy: str, case: str, distances: dict[str, dict[str, float]]) -> None:
    assert distances[f"{strategy}, {case}"]["evaluation"] < 1e-6
