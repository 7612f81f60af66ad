"""A job that is cut anywhere and goes on: the same curve, under the same strategy or another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workers.training.conftest import ALONE, PAIR
from tests.workers.training.warm import House, events, series
from workers.training.checkpointing import checkpoints

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]
STRATEGIES: dict[str, dict[str, Any]] = {
    "one_device": {"name": "one_device", "options": {"device": "cpu"}},
    "mirrored": ALONE,
    "central_storage": {"name": "central_storage", "options": {"devices": 2, "device_type": "cpu"}},
    "multi_worker_mirrored": PAIR,
    "model_parallel": {"name": "model_parallel", "options": {"mesh": {"batch": 1, "model": 2}, "device_type": "cpu"}},
}
CHAIN = ["mirrored", "one_device", "multi_worker_mirrored", "central_storage", "model_parallel"]
"""Each leg goes on where the one before it was paused."""
LEG, CUT, TOTAL = 7, 17, 30
DROPPING = {"name": "mlp", "options": {"units": [64, 32], "dropout": [0.4, 0.3]}}
SMOOTH = {"name": "mlp", "options": {"units": [64, 32], "dropout": [0, 0], "activation": "silu"}}
NORMALIZED = {"name": "cnn", "options": {"filters": [4], "units": 16, "dropout": 0.2, "batch_norm": True}}


def job(strategy: str, model: dict[str, Any] = DROPPING, **changes: Any) -> dict[str, Any]:
    """30 steps in epochs of 11, so that every cut but the tenth step's is in the middle of one."""
    return {
        "version": "lockstep/v1",
        "name": "resumed",
        "dataset": {"name": "digits"},
        "model": model,
        "strategy": STRATEGIES[strategy],
        "training": {
            "steps": TOTAL,
            "global_batch": 120,
            "optimizer": {"name": "adam", "learning_rate": 0.002},
            "warmup_steps": 20,
            "seed": 5,
            **changes.pop("training", {}),
        },
        "checkpoint": {"every_steps": CUT, "keep": 9},
        **changes,
    }


def at(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step-{step}"


def distance(one: Path, other: Path) -> float:
    """The greatest between two whole states, optimizer and random numbers included."""
    a, b = checkpoints.read_arrays(one), checkpoints.read_arrays(other)
    assert a.keys() == b.keys()
    return max(float(np.abs(a[name] - b[name]).max()) for name in a)


@pytest.mark.parametrize(
    ("strategy", "spec"),
    [
        ("one_device", job("one_device", NORMALIZED, training={"steps_per_call": 4})),
        ("one_device", job("one_device", SMOOTH, training={"mixed_precision": "float16", "steps_per_call": 5})),
        ("mirrored", job("mirrored")),
        ("central_storage", job("central_storage")),
        ("multi_worker_mirrored", job("multi_worker_mirrored", NORMALIZED)),
        ("model_parallel", job("model_parallel", SMOOTH)),
    ],
    ids=["one_device-cnn", "one_device-float16", *CHAIN[:1], *CHAIN[3:1:-1], CHAIN[4]],
)
def test_it_goes_on_as_if_it_had_not_been_cut(
    strategy: str, spec: dict[str, Any], house: House, tmp_path: Path
) -> None:
    whole, rest = tmp_path / "whole", tmp_path / "rest"
    house.run(spec, whole)
    house.run(spec, rest, resume=at(whole, CUT))
    found = distance(at(whole, TOTAL), at(rest, TOTAL))
    assert found == 0 if strategy == "one_device" else found < 1e-5
    told = [each for event in events(rest) if event.type == "points" for each in event.series]
    assert min(step for each in told for step in each.steps) >= CUT
    uncut, resumed = series(whole), series(rest)
    assert list(resumed) == list(range(CUT + 1, TOTAL + 1))
    assert resumed == pytest.approx({step: uncut[step] for step in resumed}, abs=0 if found == 0 else 1e-5)


def test_it_keeps_the_loss_when_it_changes_the_strategy(house: House, tmp_path: Path) -> None:
    total = LEG * len(CHAIN)
    long = {"training": {"steps": total}, "checkpoint": {"every_steps": LEG, "keep": 1}}
    house.run(job("one_device", SMOOTH, **long), tmp_path / "uncut")
    uncut = series(tmp_path / "uncut")
    resume: Path | None = None
    for leg, strategy in enumerate(CHAIN):
        # Each leg trains to the end; the next one goes on from the middle of it.
        run = tmp_path / strategy
        house.run(job(strategy, SMOOTH, **{**long, "checkpoint": {"every_steps": LEG, "keep": 9}}), run, resume=resume)
        losses = series(run)
        assert list(losses) == list(range(leg * LEG + 1, total + 1))
        assert losses == pytest.approx({step: uncut[step] for step in losses}, abs=1e-4), strategy
        resume = at(run, (leg + 1) * LEG)


@pytest.mark.parametrize("strategy", ["one_device", "multi_worker_mirrored"])
def test_it_pauses_in_all_processes_at_once_and_goes_on(strategy: str, house: House, tmp_path: Path) -> None:
    spec = {**job(strategy), "checkpoint": None}
    house.run({**spec, "checkpoint": {"every_minutes": 9}}, tmp_path / "whole")
    assert checkpoints.among(tmp_path / "whole" / "checkpoints") == [at(tmp_path / "whole", TOTAL)]
    # Each process has a run folder of its own here, as on hosts of their own, and only the last one's is asked.
    where = house.pair if strategy == "multi_worker_mirrored" else house.alone
    runs = [tmp_path / f"host-{number}" for number in range(2 if where is house.pair else 1)]
    runs[-1].mkdir()
    (runs[-1] / "pause").touch()
    assert not where.run(spec, *runs)
    assert all((run / "paused").exists() for run in runs)
    [checkpoint] = (runs[0] / "checkpoints").iterdir()
    assert not (runs[-1] / "checkpoints").exists() or len(runs) == 1
    told = events(runs[0])
    assert not any(event.type in {"finished", "artifact"} for event in told)
    assert told[-1].type == "phase"
    assert (told[-1].phase, told[-1].detail) == ("saving", f"Paused at step {checkpoints.step_of(checkpoint)}")
    house.run({**spec, "checkpoint": {"every_minutes": 9}}, tmp_path / "rest", resume=checkpoint)
    assert distance(at(tmp_path / "whole", TOTAL), at(tmp_path / "rest", TOTAL)) < 1e-6


def test_it_saves_one_when_it_is_asked_to(house: House, tmp_path: Path) -> None:
    tmp_path.joinpath("checkpoint-now").touch()
    house.run({**job("one_device"), "checkpoint": None}, tmp_path)
    assert [path.name for path in checkpoints.among(tmp_path / "checkpoints")] == ["step-1"]
    assert not tmp_path.joinpath("checkpoint-now").exists()
    assert events(tmp_path)[-1].type == "finished"


def test_it_saves_by_the_clock_and_the_best_by_its_metric(house: House, tmp_path: Path) -> None:
    rule = {"every_minutes": 1e-9, "keep": 1, "best": "val_accuracy"}
    house.run({**job("one_device", training={"steps_per_call": 4}), "checkpoint": rule}, tmp_path)
    saved = [event for event in events(tmp_path) if event.type == "checkpoint"]
    assert [event.step for event in saved] == [4, 8, 11, 15, 19, 22, 26, 30]
    accuracies = series(tmp_path, "val_accuracy")
    assert {event.step for event in saved if event.best} <= accuracies.keys()
    best = max(accuracies, key=lambda step: (accuracies[step], -step))
    kept = {path.name for path in checkpoints.among(tmp_path / "checkpoints")}
    assert kept == {f"step-{best}", f"step-{TOTAL}"}


def test_it_goes_on_training_when_no_checkpoint_can_be_written(house: House, tmp_path: Path) -> None:
    # A file where the folder should be.
    (tmp_path / "checkpoints").touch()
    (tmp_path / "pause").touch()
    house.run(job("one_device"), tmp_path)
    told = events(tmp_path)
    assert told[-1].type == "finished"
    assert not (tmp_path / "paused").exists()
    faults = [event.detail for event in told if event.type == "phase" and "could not be written" in event.detail]
    assert [fault.split()[0] for fault in faults] == ["step-1", f"step-{CUT}", f"step-{TOTAL}"]


def test_it_refuses_weights_of_another_shape_by_name(house: House, tmp_path: Path) -> None:
    house.run(job("one_device", SMOOTH), tmp_path / "whole")
    turned = {"name": "mlp", "options": {**SMOOTH["options"], "units": [32, 64]}}
    spec = job("one_device", turned)
    error = house.alone.run(spec, tmp_path / "rest", resume=at(tmp_path / "whole", CUT))
    assert "step-17 does not fit: model/dense/kernel is (64, 32) in the job and (64, 64) in the checkpoint" in error


def test_it_exports_a_saved_model_that_answers_as_the_keras_one(house: House, tmp_path: Path) -> None:
    house.run(job("mirrored", NORMALIZED, export=["keras", "saved_model"]), tmp_path)
    artifacts = [event.name for event in events(tmp_path) if event.type == "artifact"]
    assert artifacts == ["model.keras", "saved_model.zip"]
    asked = {
        "saved_model": str(tmp_path / "saved_model.zip"),
        "keras": str(tmp_path / "model.keras"),
        "features": np.random.default_rng(1).random((5, 8, 8, 1)).tolist(),
    }
    [answer] = house.alone.ask(asked)
    assert answer["distance"] < 1e-6
