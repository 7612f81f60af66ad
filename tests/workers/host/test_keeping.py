"""What becomes of run folders that are over."""

from __future__ import annotations

import os
import time
from pathlib import Path

from workers.host.keeping import STOP_MARK_SECONDS, Keeper
from workers.host.runs import RunFolder


def over(runs: Path, attempt: int, *, days_ago: float, model: bool = True) -> RunFolder:
    run = RunFolder(runs / str(attempt))
    run.accept({"attempt": attempt})
    (run.path / "logs").mkdir()
    (run.path / "logs/worker-0.stdout").write_text("much")
    if model:
        (run.path / "model.keras").write_text("weights")
    run.settled_file.touch()
    then = time.time() - days_ago * 86_400
    os.utime(run.settled_file, (then, then))
    return run


def test_it_keeps_the_model_of_an_old_run_and_nothing_else(tmp_path: Path) -> None:
    run = over(tmp_path, 1, days_ago=8)
    Keeper(tmp_path, 7).tend()
    assert sorted(os.listdir(run.path)) == ["model.keras", "settled"]
    assert run.settled


def test_it_keeps_of_an_old_run_what_the_store_may_still_take(tmp_path: Path) -> None:
    run = over(tmp_path, 1, days_ago=8, model=False)
    (run.checkpoints / "step-10").mkdir(parents=True)
    run.begun_file.touch()
    Keeper(tmp_path, 7).tend()
    assert sorted(os.listdir(run.path)) == ["assignment.json", "begun", "checkpoints", "settled"]
    assert not run.over
    run.stored_file.touch()
    Keeper(tmp_path, 7).tend()
    assert not run.path.exists()


def test_it_removes_an_old_run_that_left_no_model(tmp_path: Path) -> None:
    run = over(tmp_path, 1, days_ago=8, model=False)
    Keeper(tmp_path, 7).tend()
    assert not run.path.exists()


def test_it_leaves_a_recent_run_as_it_is(tmp_path: Path) -> None:
    run = over(tmp_path, 1, days_ago=6)
    Keeper(tmp_path, 7).tend()
    assert (run.path / "logs/worker-0.stdout").exists()


def test_it_forgets_a_stop_that_no_launch_followed(tmp_path: Path) -> None:
    fresh, old = RunFolder(tmp_path / "1"), RunFolder(tmp_path / "2")
    for run in (fresh, old):
        run.ask_to_stop()
    then = time.time() - STOP_MARK_SECONDS - 1
    os.utime(old.stop_file, (then, then))
    Keeper(tmp_path, 7).tend()
    assert fresh.stop_file.exists()
    assert not old.path.exists()


def test_it_touches_nothing_that_is_no_run_folder(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "host.lock").touch()
    Keeper(tmp_path, 0).tend()
    assert sorted(os.listdir(tmp_path)) == ["host.lock", "notes"]
