"""How gradients are put together: what the spec accepts, refuses and derives."""

from __future__ import annotations

from typing import Any

import pytest

from workers.contract.problems import SpecInvalid
from workers.contract.spec import JobSpec, parse


def with_training(spec: dict[str, Any], **training: Any) -> JobSpec:
    return parse({**spec, "training": {**spec["training"], **training}})


def refused(spec: dict[str, Any], **training: Any) -> dict[str, str]:
    with pytest.raises(SpecInvalid) as caught:
        with_training(spec, **training)
    return {problem.path: str(problem) for problem in caught.value.problems}


def test_it_makes_a_step_of_several_global_batches(seed_spec: dict[str, Any]) -> None:
    spec = with_training(seed_spec, aggregation={"method": "local", "micro_batches": 4})
    assert spec.samples_per_step == 512
    assert spec.steps_per_epoch == 1438 // 512
    assert spec.total_steps == 20


def test_it_says_that_a_sum_learns_as_much_faster_as_the_batch_is_large(seed_spec: dict[str, Any]) -> None:
    assert with_training(seed_spec).effective_learning_rate == 0.001
    spec = with_training(seed_spec, aggregation={"method": "sum"}, learning_rate_scaling="linear")
    assert spec.effective_learning_rate == pytest.approx(0.001 * 2 * 128)


@pytest.mark.parametrize("method", ["mean", "sum"])
def test_it_refuses_micro_batches_that_would_not_be_used(method: str, seed_spec: dict[str, Any]) -> None:
    problems = refused(seed_spec, aggregation={"method": method, "micro_batches": 2})
    assert "remove micro_batches or use method local" in problems["training.aggregation"]


def test_it_asks_how_many_micro_batches_local_takes(seed_spec: dict[str, Any]) -> None:
    assert "local needs micro_batches" in refused(seed_spec, aggregation={"method": "local"})["training.aggregation"]


def test_it_refuses_steps_of_more_samples_than_there_are(seed_spec: dict[str, Any]) -> None:
    problems = refused(seed_spec, aggregation={"method": "local", "micro_batches": 12})
    assert "Use at most 11" in problems["training.aggregation.micro_batches"]


@pytest.mark.parametrize("clip", [{}, {"value": 1.0, "norm": 1.0}, {"norm": 1.0, "global_norm": 2.0}])
def test_it_wants_exactly_one_way_to_clip(clip: dict[str, float], seed_spec: dict[str, Any]) -> None:
    assert "exactly one of value, norm and global_norm" in refused(seed_spec, clip=clip)["training.clip"]


@pytest.mark.parametrize("bound", [0, -1, ".inf", ".nan", "much"])
def test_it_refuses_a_bound_that_bounds_nothing(bound: Any, seed_spec: dict[str, Any]) -> None:
    assert list(refused(seed_spec, clip={"norm": float(bound[1:]) if str(bound)[0] == "." else bound})) == [
        "training.clip.norm"
    ]


def test_it_keeps_aggregation_and_clip_through_yaml(seed_spec: dict[str, Any]) -> None:
    spec = with_training(seed_spec, aggregation={"method": "local", "micro_batches": 2}, clip={"global_norm": 0.5})
    assert parse(spec.to_yaml()) == spec
