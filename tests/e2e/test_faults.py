"""Redis, ingest, web and the Celery worker are killed under a running training: no point and no log line is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.house import supervisors
from tests.waiting import wait_for

SPEC = """
version: lockstep/v1
name: killed all around
dataset: {name: synthetic_images, options: {shape: [8, 8, 1], classes: 10, samples: 4096}}
model: {name: mlp}
strategy: {name: mirrored, options: {devices: 2}}
training: {steps: 1000000, global_batch: 64, optimizer: {name: sgd, learning_rate: 0.001}}
"""
READ = """
from webapp.ingest.models import LogLine
from webapp.metrics import store
points = [
    [c.key.name, c.key.replica, c.steps.tolist(), [repr(v) for v in c.values.tolist()]]
    for c in store.read(Job.objects.get().pk, points=None)
]
logs = {}
for line in LogLine.objects.order_by("id"):
    name = f"{line.process}.{line.stream}"
    logs[name] = logs.get(name, "") + line.text + ("" if line.partial else chr(10))
show({"points": points, "logs": logs})
"""


@pytest.fixture
def house(tmp_path: Path, migrated: Path) -> Iterator[Server]:
    house = Server(tmp_path)
    house.begin_with(migrated)
    house.start()
    house.ask("someone('alice', 'vision', 'owner')")
    yield house.wait_until_ready()
    house.end()


def job(house: Server) -> dict[str, Any]:
    shown: dict[str, Any] = house.ask("show(Job.objects.values('state', 'step', 'cause', 'log_tail').get())")
    return shown


def wait_for_step(house: Server, step: int) -> int:
    def reached() -> int:
        shown = job(house)
        assert shown["state"] not in {"failed", "cancelled", "succeeded"}, shown["cause"] + shown["log_tail"]
        return shown["step"] if shown["step"] >= step else 0

    return wait_for(reached, seconds=60, what=f"step {step}\n{house.log('ingest')}\n{house.log('host')}")


def written(run: Path) -> dict[tuple[str, int | None], list[tuple[int, str]]]:
    """What the engine wrote, by series and replica."""
    points: dict[tuple[str, int | None], list[tuple[int, str]]] = {}
    for path in sorted((run / "events").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            event = json.loads(line)
            for series in event.get("series", []) if event["type"] == "points" else []:
                pairs = zip(series["steps"], map(repr, map(float, series["values"])), strict=True)
                points.setdefault((series["name"], series["replica"]), []).extend(pairs)
    return points


@pytest.mark.e2e
@pytest.mark.tensorflow
def test_it_loses_no_point_and_no_log_line_whatever_is_killed(house: Server, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    house.manage("submit", str(tmp_path / "spec.yaml"))
    step = wait_for_step(house, 1)
    for victim in ("redis", "ingest", "web"):
        house.kill(victim)
        house.start(victim)
        step = wait_for_step(house, step + 500)
    worker = house.celery_worker()
    worker.kill()
    wait_for(lambda: house.celery_worker().pid != worker.pid, what="a new Celery worker")
    wait_for_step(house, step + 500)
    house.wait_until_ready()

    stop = house.manage("stop", "1")
    assert stop.returncode == 0
    wait_for(lambda: job(house)["state"] == "cancelled", seconds=20, what="the end of the job")

    run = tmp_path / "runs" / "1"
    wait_for(lambda: not supervisors(tmp_path), what="the supervisor, which stays until all is acknowledged")
    points, logs = stored(house)
    expected = written(run)
    assert sum(map(len, expected.values())) > 2000
    assert points.keys() == expected.keys()
    for series, pairs in expected.items():
        assert points[series] == pairs, series
    assert logs == {path.name: path.read_text() for path in (run / "logs").iterdir() if path.stat().st_size}


def stored(house: Server) -> tuple[dict[tuple[str, int | None], list[tuple[int, str]]], dict[str, str]]:
    """What the database holds, in the shape of `written`, and each log as one text."""
    found = house.ask(READ)
    points = {
        (name, replica): list(zip(steps, values, strict=True)) for name, replica, steps, values in found["points"]
    }
    return points, found["logs"]
