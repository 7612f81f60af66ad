"""Checkpoints written beside the training: which stay, and what happens when the disk takes none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.workers.training.snapshots import manifest, written
from workers.contract.events import Event, parse_event
from workers.training.checkpointing import checkpoints
from workers.training.checkpointing.writing import CheckpointWriter, Snapshot
from workers.training.reporter import Reporter


@pytest.fixture
def reporter(tmp_path: Path) -> Iterator[Reporter]:
    made = Reporter(tmp_path / "events.jsonl", "worker-0")
    yield made
    made.close()


def told(reporter: Reporter, tmp_path: Path) -> list[Event]:
    reporter.flush()
    return [parse_event(line) for line in (tmp_path / "events.jsonl").read_bytes().splitlines()]


def snapshot(step: int, *, best: bool = False) -> Snapshot:
    return Snapshot(manifest(step, metrics={"loss": 1 / step}), {"model/x": np.full(1000, step)}, best)


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_keeps_the_newest_and_the_best(reporter: Reporter, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    writer = CheckpointWriter(folder, reporter, keep=2)
    for step in range(1, 7):
        writer.put(snapshot(step, best=step in {1, 2}))
    writer.wait()
    assert kept(folder) == ["step-2", "step-5", "step-6"]
    found = told(reporter, tmp_path)
    saved = [event for event in found if event.type == "checkpoint"]
    assert [event.step for event in saved] == [1, 2, 3, 4, 5, 6]
    assert [event.best for event in saved] == [True, True, False, False, False, False]
    assert [event.name for event in found if event.type == "checkpoint_dropped"] == ["step-1", "step-3", "step-4"]
    newest = saved[-1]
    assert newest.metrics == {"loss": 1 / 6}
    assert newest.path == str(folder / "step-6")
    assert newest.bytes == sum(file.stat().st_size for file in (folder / "step-6").iterdir())


def test_it_goes_on_from_what_an_earlier_run_left(reporter: Reporter, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    written(folder, 9, 10)
    (folder / ".step-11.77").mkdir()
    writer = CheckpointWriter(folder, reporter, keep=2)
    writer.put(snapshot(11))
    writer.wait()
    assert kept(folder) == ["step-10", "step-11"]


def test_it_says_that_the_disk_takes_none_and_goes_on(
    reporter: Reporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checkpoints"
    writer = CheckpointWriter(folder, reporter, keep=2)
    with monkeypatch.context() as full:
        # More than any disk has left.
        full.setattr(checkpoints, "RESERVE_BYTES", 2**70)
        writer.put(snapshot(1))
        writer.wait()
    assert "No space left" in str(writer.failed)
    assert kept(folder) == []
    writer.put(snapshot(2))
    writer.wait()
    assert writer.failed is None
    assert kept(folder) == ["step-2"]
    found = told(reporter, tmp_path)
    assert [event.type for event in found] == ["phase", "checkpoint"]
    assert found[0].type == "phase"
    assert found[0].detail.startswith("step-1 could not be written (No space left")


def test_it_leaves_nothing_of_one_that_broke_off(reporter: Reporter, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    writer = CheckpointWriter(folder, reporter, keep=2)
    unwritable = Snapshot(manifest(1), {"model/x": np.asarray([object()])})
    writer.put(unwritable)
    writer.wait()
    assert writer.failed
    assert kept(folder) == []
