"""What a job keeps: the words in which a rhythm or a metric that cannot be kept by is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.seed import SEED_SPEC
from workers.contract.problems import SpecInvalid
from workers.contract.spec import parse


def keeping(checkpoint: dict[str, Any], **training: Any) -> dict[str, Any]:
    return {**SEED_SPEC, "training": {**SEED_SPEC["training"], **training}, "checkpoint": checkpoint}


def test_it_takes_the_documented_form() -> None:
    kept = parse(keeping({"every_steps": 50, "keep": 2})).checkpoint
    assert kept is not None
    assert (kept.every_steps, kept.keep, kept.best) == (50, 2, None)


def test_it_needs_some_rhythm() -> None:
    with pytest.raises(SpecInvalid, match="give every_steps, every_minutes or both"):
        parse(keeping({"keep": 3}))


@pytest.mark.parametrize("best", ["loss", "val_loss", "val_accuracy"])
def test_it_keeps_the_best_by_what_is_measured(best: str) -> None:
    assert parse(keeping({"every_steps": 50, "best": best})).checkpoint


@pytest.mark.parametrize(
    ("best", "split", "words"),
    [
        ("val_mean_absolute_error", 0.2, "is not measured in classification.*Use val_loss or val_accuracy"),
        ("val_loss", 0, ".*validation_split holds none out.*Raise training.validation_split, or use loss"),
    ],
)
def test_it_refuses_to_keep_the_best_by_what_is_not(best: str, split: float, words: str) -> None:
    with pytest.raises(SpecInvalid, match=f"checkpoint.best: {words}"):
        parse(keeping({"every_steps": 50, "best": best}, validation_split=split))
