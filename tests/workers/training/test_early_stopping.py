"""When a job ends early: by what it watches, whichever way is better."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.workers.training.conftest import PAIR, seed_with
from tests.workers.training.warm import House, events, series
from workers.contract.schedule import EarlyStopping
from workers.training.early_stopping import Patience


def stopped_at(name: str, values: list[float], **settings: float) -> int | None:
    """The epoch after which it ends, None when it goes on."""
    patience = Patience(EarlyStopping(metric=name, **{"patience": 2, **settings}))
    for epoch, value in enumerate(values, start=1):
        if patience.look({name: value}, epoch):
            assert patience.reason == f"Stopped early at epoch {epoch}: {name} did not improve for 2 epochs"
            return epoch
    return None


@pytest.mark.parametrize(
    ("name", "values", "epoch"),
    [
        ("val_loss", [3, 2, 1, 0.9, 0.8], None),
        ("val_loss", [3, 2, 2, 2.5, 1], 4),
        ("val_loss", [3, 4, 2, 3, 1], None),
        ("val_loss", [math.nan, math.nan, 1], 2),
        ("val_accuracy", [0.5, 0.6, 0.7], None),
        ("val_accuracy", [0.5, 0.4, 0.5], 3),
    ],
)
def test_it_waits_for_something_better(name: str, values: list[float], epoch: int | None) -> None:
    assert stopped_at(name, values) == epoch


def test_it_counts_only_what_improves_by_enough() -> None:
    assert stopped_at("val_loss", [3, 2.95, 2.91], min_delta=0.1) == 3
    assert stopped_at("val_loss", [3, 2.95, 2.8], min_delta=0.1) is None


def test_it_never_ends_a_job_that_did_not_ask() -> None:
    assert not Patience(None).look({}, 1)


def test_one_epoch_is_not_several() -> None:
    patience = Patience(EarlyStopping(patience=1))
    assert [patience.look({"val_loss": value}, epoch) for epoch, value in enumerate((1.0, 1.0), start=1)] == [
        False,
        True,
    ]
    assert patience.reason.endswith("for 1 epoch")


@pytest.mark.tensorflow
def test_it_ends_all_processes_at_once_and_says_why(house: House, tmp_path: Path) -> None:
    """The model's own task is watched: a reconstruction, by two workers."""
    stopping = {"patience": 1, "metric": "val_reconstruction_error", "min_delta": 10}
    model = {"name": "autoencoder", "options": {"units": [16], "code": 4}}
    house.run(seed_with(strategy=PAIR, model=model, training={"early_stopping": stopping}), tmp_path)
    finished = events(tmp_path)[-1]
    assert finished.type == "finished"
    assert finished.step == 2 * 11
    assert finished.stopped_early == "Stopped early at epoch 2: val_reconstruction_error did not improve for 1 epoch"
    assert len(series(tmp_path, "val_reconstruction_error")) == 2
