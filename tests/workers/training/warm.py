"""Engines that stay: each process is started once and runs many short jobs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.workers.training.conftest import ROOT, SCRIPT
from workers.contract.assignment import Place
from workers.contract.events import Event, parse_event
from workers.contract.spec import parse
from workers.gang import plan_ports
from workers.gang.environment import environment
from workers.training.here import place_here


class Engines:
    """The processes of one cluster; every job that they are given must have the same layout of processes."""

    def __init__(self, spec: dict[str, Any], folder: Path) -> None:
        parsed = parse(spec)
        self._planned = planned = plan_ports(place_here(parsed))
        self._folder = folder
        self._running = [
            self._start(Place(spec=parsed, process=each, processes=planned, run=str(folder))) for each in planned
        ]

    def run(self, spec: dict[str, Any], *runs: Path, resume: Path | None = None) -> str:
        """Train; the first error or an empty text. `runs`: one for all processes, or one for each."""
        parsed = parse(spec)
        ports = [process.port for process in self._planned]
        here = tuple(
            process.model_copy(update={"port": port}) for process, port in zip(place_here(parsed), ports, strict=True)
        )
        folders = runs if len(runs) > 1 else runs * len(here)
        places = [
            Place(spec=parsed, process=each, processes=here, run=str(run), resume=str(resume) if resume else None)
            for each, run in zip(here, folders, strict=True)
        ]
        answers = self.ask(*({"place": place.model_dump(mode="json")} for place in places))
        return next((answer["error"] for answer in answers if "error" in answer), "")

    def ask(self, *asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Send each process its line and wait for all their answers."""
        for process, line in zip(self._running, asked, strict=True):
            assert process.stdin is not None
            process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()
        return [self._answer(process) for process in self._running]

    def end(self) -> None:
        for process in self._running:
            process.kill()
            process.communicate()

    def _start(self, place: Place) -> subprocess.Popen[str]:
        env = environment(place.process, place.processes, self._folder, os.environ)
        command = [*SCRIPT, "warm_engine.py", place.model_dump_json()]
        with (self._folder / f"{place.process.name}.log").open("w") as log:
            return subprocess.Popen(
                command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def _answer(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "\n".join(log.read_text()[-4000:] for log in self._folder.glob("*.log"))
        found: dict[str, Any] = json.loads(line)
        return found


class House(NamedTuple):
    """Engines for one process, with two devices, and for two processes."""

    alone: Engines
    pair: Engines

    def of(self, spec: dict[str, Any]) -> Engines:
        """Those that a job needs."""
        return self.pair if spec["strategy"]["name"] == "multi_worker_mirrored" else self.alone

    def run(self, spec: dict[str, Any], *runs: Path, resume: Path | None = None) -> None:
        """Train, or do what else the job is for; a failure fails the test."""
        error = self.of(spec).run(spec, *runs, resume=resume)
        assert not error, error


@contextmanager
def engines(spec: dict[str, Any], folder: Path) -> Iterator[Engines]:
    """Engines that end with the test."""
    started = Engines(spec, folder)
    try:
        yield started
    finally:
        started.end()


def events(run: Path, process: str = "worker-0") -> list[Event]:
    """What a process of a run told."""
    lines = (run / "events" / f"{process}.jsonl").read_bytes().splitlines()
    return [parse_event(line) for line in lines]


def series(run: Path, name: str = "loss") -> dict[int, float]:
    """The chief's values by step."""
    found: dict[int, float] = {}
    for event in events(run):
        for each in event.series if event.type == "points" else ():
            if each.name == name and each.replica is None:
                found.update(zip(each.steps, each.values, strict=True))
    return found
