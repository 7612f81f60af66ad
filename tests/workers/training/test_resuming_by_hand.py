"""`python -m workers.training --resume`: what it refuses before anything starts, and pausing parameter servers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_for
from tests.workers.training.conftest import ROOT, ByHand, seed_with
from tests.workers.training.snapshots import linear, written
from workers.contract.assignment import Place
from workers.contract.events import parse_event
from workers.training.checkpointing import checkpoints
from workers.training.here import place_here

Start = Callable[..., ByHand]
SMOOTH = {"name": "mlp", "options": {"units": [64, 32], "dropout": [0, 0], "activation": "silu"}}


def test_it_starts_nothing_with_a_torn_checkpoint_and_offers_another(by_hand: Start, tmp_path: Path) -> None:
    good, torn = written(tmp_path / "checkpoints", 5, 6)
    (torn / checkpoints.STATE).write_bytes(b"")
    run = by_hand(linear().to_dict(), "--resume", str(torn))
    assert run.finish() == 2
    assert f"--resume: {torn} is torn: state.npz has 0 bytes instead of" in run.stderr
    assert f"Use --resume {good}" in run.stderr
    assert not run.out.exists()


def test_it_starts_nothing_with_the_checkpoint_of_a_job_that_only_a_server_knows(by_hand: Start) -> None:
    run = by_hand({**linear().to_dict(), "resume": {"job": 7, "checkpoint": "step-50"}})
    assert run.finish() == 2
    assert "resume: names a checkpoint of a server's job (got step-50 of job 7). Give its folder with" in run.stderr


def test_a_process_on_a_host_says_which_checkpoint_is_torn_before_it_imports_anything(tmp_path: Path) -> None:
    [torn] = written(tmp_path, 6)
    (torn / checkpoints.STATE).write_bytes(b"")
    spec = linear()
    [process] = place_here(spec)
    place = Place(spec=spec, process=process, processes=(process,), run=str(tmp_path / "run"), resume=str(torn))
    file = tmp_path / "place.json"
    file.write_text(place.model_dump_json())
    command = [sys.executable, "-m", "workers.training.process", str(file)]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False).returncode == 1
    lines = (tmp_path / "run" / "events" / "worker-0.jsonl").read_bytes().splitlines()
    told = [parse_event(line) for line in lines]
    assert [event.phase for event in told if event.type == "phase"] == ["preparing"]
    assert told[-1].type == "failed"
    assert told[-1].cause.startswith(f"{torn} is torn: state.npz has 0 bytes")


def job(strategy: dict[str, Any], steps: int) -> dict[str, Any]:
    training = {"epochs": None, "steps": steps, "global_batch": 120, "optimizer": {"name": "momentum"}}
    return {**seed_with(strategy=strategy, training=training), "model": SMOOTH}


@pytest.mark.tensorflow
def test_it_pauses_parameter_servers_between_two_steps_and_goes_on_in_the_same_folder(
    by_hand: Start, tmp_path: Path
) -> None:
    options = {"workers": 1, "in_flight": 3}
    servers = {"name": "parameter_server", "options": options}
    cut = by_hand(job(servers, 100_000))
    wait_for(lambda: cut.series("loss"), seconds=200, what="the first loss")
    (cut.out / "pause").touch()
    assert cut.finish() == 3, cut.stderr
    [checkpoint] = checkpoints.among(cut.out / "checkpoints")
    step = checkpoints.step_of(checkpoint)
    losses = cut.series("loss")
    assert list(losses) == list(range(1, step + 1))
    assert f"paused; go on with --resume {checkpoint}" in cut.stderr
    assert not (cut.out / "model.keras").exists()
    rest = ByHand(job(servers, step + 15), cut.out.parent, "--resume", str(cut.out), "--overwrite")
    assert rest.finish() == 0, rest.stderr
    assert checkpoints.among(rest.out / "checkpoints") == [checkpoint]
    assert (rest.out / "model.keras").exists()
    found = rest.series("loss")
    assert list(found) == list(range(step + 1, step + 16))
    uncut = by_hand(job({"name": "one_device", "options": {"device": "cpu"}}, step + 15))
    assert uncut.finish() == 0, uncut.stderr
    assert losses | found == pytest.approx(uncut.series("loss"), abs=1e-4)
