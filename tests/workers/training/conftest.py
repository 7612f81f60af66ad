"""Runs of the engine by hand, each a process of its own; the ones that several tests look at happen once."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.seed import SEED_SPEC
from workers.contract.events import Event, parse_event

if TYPE_CHECKING:
    from tests.workers.training.warm import House

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = [sys.executable, "-m", "tests.workers.training.script"]
"""Followed by the name of a script of this folder."""


class ByHand:
    """A finished or running `python -m workers.training`."""

    def __init__(self, spec: dict[str, Any], folder: Path, *arguments: str, **env: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.out = folder / "run"
        document = folder / "spec.yaml"
        document.write_text(yaml.safe_dump(spec))
        command = [sys.executable, "-m", "workers.training", str(document), "--out", str(self.out), *arguments]
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            self.process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **env}, stdout=out, stderr=err)
        self._folder = folder

    def finish(self, seconds: float = 200) -> int:
        """The exit code; a run that does not end fails the test."""
        try:
            return self.process.wait(seconds)
        finally:
            self.end()

    def end(self) -> None:
        """End it and what it started, if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(15)

    @property
    def stdout(self) -> str:
        return (self._folder / "stdout").read_text()

    @property
    def stderr(self) -> str:
        return (self._folder / "stderr").read_text()

    @property
    def events(self) -> list[Event]:
        file = self.out / "events.jsonl"
        lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
        return [parse_event(line) for line in lines if line.endswith(b"\n")]

    def series(self, name: str, replica: int | None = None) -> dict[int, float]:
        """Values by step, from every process."""
        found: dict[int, float] = {}
        for event in self.events:
            for series in event.series if event.type == "points" else ():
                if (series.name, series.replica) == (name, replica):
                    found.update(zip(series.steps, series.values, strict=True))
        return found


def seed_with(**changes: dict[str, Any]) -> dict[str, Any]:
    """The seed spec with parts replaced; `training` is merged."""
    spec = copy.deepcopy(SEED_SPEC)
    spec["training"].update(changes.pop("training", {}))
    for key in [key for key, value in spec["training"].items() if value is None]:
        del spec["training"][key]
    return {**spec, **changes}


def run_script(name: str, *arguments: str, **env: str) -> dict[str, Any]:
    """The JSON that a script beside this file prints last; TensorFlow stays out of the tests' own process."""
    done = subprocess.run(
        [*SCRIPT, name, *arguments],
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", **env},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[Callable[..., ByHand]]:
    """Starts runs that end with the test."""
    runs: list[ByHand] = []

    def start(spec: dict[str, Any], *arguments: str, **env: str) -> ByHand:
        runs.append(ByHand(spec, tmp_path / str(len(runs)), *arguments, **env))
        return runs[-1]

    yield start
    for run in runs:
        run.end()


@pytest.fixture(scope="session")
def seed_run(tmp_path_factory: pytest.TempPathFactory) -> ByHand:
    """The contract's example, run to its end by two processes."""
    run = ByHand(SEED_SPEC, tmp_path_factory.mktemp("seed"))
    assert run.finish() == 0, run.stderr
    return run


ALONE: dict[str, Any] = {"name": "mirrored", "options": {"devices": 2, "device_type": "cpu"}}
PAIR: dict[str, Any] = {"name": "multi_worker_mirrored", "options": {"workers": 2, "device_type": "cpu"}}
"""The only multi-worker strategy for a warm pair of processes: TensorFlow makes one for each process, once."""


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Engines that all tests of one worker share."""
    from tests.workers.training.warm import House, engines

    with (
        engines(seed_with(strategy=ALONE), tmp_path_factory.mktemp("alone")) as alone,
        engines(seed_with(strategy=PAIR), tmp_path_factory.mktemp("pair")) as pair,
    ):
        yield House(alone, pair)


EXACT: dict[str, Any] = {
    "model": {"name": "mlp", "options": {"units": [64, 32], "dropout": [0, 0]}},
    "training": {"epochs": None, "steps": 20, "global_batch": 240, "validation_split": 0.001},
}
"""20 steps over three epochs, one validation sample for up to four replicas."""


@pytest.fixture(scope="session")
def exact_run(tmp_path_factory: pytest.TempPathFactory) -> ByHand:
    """A job that is made to split its devices, started by hand."""
    strategy = {"name": "mirrored", "options": {"devices": 2, "split": 2}}
    run = ByHand(seed_with(**copy.deepcopy(EXACT), strategy=strategy), tmp_path_factory.mktemp("exact"))
    assert run.finish() == 0, run.stderr
    return run


@pytest.fixture(scope="session")
def hand_written(exact_run: ByHand, seed_run: ByHand) -> dict[str, Any]:
    """What a loop written by hand on one device finds for the same job, compared with the models of both runs."""
    models = [str(run.out / "model.keras") for run in (exact_run, seed_run)]
    return run_script("hand_written.py", str(exact_run.out.parent / "spec.yaml"), *models)
