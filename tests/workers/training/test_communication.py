"""How replicas talk: messages of a chosen size, and a worker that hangs ends the job within the time-out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from tests.waiting import wait_for
from tests.workers.training.conftest import ByHand, seed_with
from tests.workers.training.test_engine import engine_processes
from workers.contract.fitting import check
from workers.contract.spec import parse
from workers.training.distribution import packs

Start = Callable[..., ByHand]
PATIENCE = 6


class Shape(tuple[int, ...]):
    def num_elements(self) -> int:
        return self[0]


class Type(NamedTuple):
    size: int


class Gradient(NamedTuple):
    shape: Shape
    dtype: Type


def gradient(elements: int, size: int = 4) -> Gradient:
    return Gradient(Shape((elements,)), Type(size))


def test_it_fills_messages_up_to_the_size_that_was_asked_for() -> None:
    gradients = [gradient(100), gradient(100), gradient(100), gradient(1000), gradient(10), gradient(10, size=2)]
    packed = packs(gradients, 1024)
    assert [[each.shape[0] for each in pack] for pack in packed] == [[100, 100], [100], [1000], [10], [10]]
    assert len(packs(gradients[:5], 2**20)) == 1


def test_it_names_the_nearest_that_works_for_an_odd_hierarchy() -> None:
    spec = parse(seed_with(strategy={"name": "mirrored", "options": {"devices": 2}}))
    options = {"devices": 3, "cross_device_ops": "hierarchical_copy"}
    odd = spec.model_copy(update={"strategy": spec.strategy.model_copy(update={"options": options})})
    [problem, *_] = check(odd)
    assert problem.path == "strategy.options.cross_device_ops"
    assert "there are 3" in problem.message
    assert problem.remedy == "Use auto or reduction_to_one_device, or 2 or 4 devices"


def test_it_fails_within_the_time_out_when_a_worker_hangs(by_hand: Start) -> None:
    strategy = {"name": "multi_worker_mirrored", "options": {"workers": 2, "timeout_seconds": PATIENCE}}
    run = by_hand(seed_with(strategy=strategy, training={"epochs": 100_000}))
    wait_for(lambda: run.series("loss"), seconds=200, what="the first loss")
    # Stopped, it keeps its connections and answers nothing, as one does that is stuck in the kernel or a debugger.
    engine_processes(run)["worker-1"].suspend()
    before = time.monotonic()
    assert run.finish(100) == 1
    assert "failed in worker-0: worker-0 waited in an all-reduce for 6 s" in run.stderr
    assert "strategy.options.timeout_seconds" in run.stderr
    assert time.monotonic() - before > PATIENCE / 2
