"""The learning rate of each step, as it is told."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.workers.training.conftest import seed_with
from workers.contract.spec import parse
from workers.training.optimizers import learning_rate_at


def rates(steps: int, **training: Any) -> list[float]:
    optimizer = {"name": "sgd", "learning_rate": 1.0}
    spec = parse(seed_with(training={"epochs": None, "steps": steps, "optimizer": optimizer, **training}))
    return [learning_rate_at(spec, step) for step in range(1, steps + 1)]


def test_it_is_constant_once_it_is_warm() -> None:
    assert rates(4) == [1, 1, 1, 1]
    assert rates(6, warmup_steps=4) == [0.25, 0.5, 0.75, 1, 1, 1]


def test_it_falls_by_steps_from_the_peak_on() -> None:
    schedule = {"kind": "step", "every_steps": 2, "factor": 0.5}
    assert rates(6, schedule=schedule) == [1, 1, 0.5, 0.5, 0.25, 0.25]
    assert rates(6, schedule=schedule, warmup_steps=2) == [0.5, 1, 1, 0.5, 0.5, 0.25]


def test_it_falls_by_a_cosine_to_its_final_part_at_the_last_step() -> None:
    found = rates(5, schedule={"kind": "cosine", "final": 0.1})
    assert found == pytest.approx([0.1 + 0.9 * (1 + math.cos(math.pi * t / 4)) / 2 for t in range(5)])
    warm = rates(6, schedule={"kind": "cosine"}, warmup_steps=2)
    assert warm[:2] == [0.5, 1]
    assert warm[-1] == pytest.approx(0)
