"""The cases of the self-test: small trainings by which a host finds out what works with its TensorFlow.

There is one for each strategy of the catalog x aggregation x precision x XLA. What the contract itself refuses is not
tried: it has its sentence already.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Container
from typing import Any, Literal, NamedTuple

from workers.contract import catalog
from workers.contract.gradients import Aggregation
from workers.contract.inventory import SelfTest
from workers.contract.problems import SpecInvalid
from workers.contract.spec import JobSpec, Training, parse

Verdict = Literal["ok", "failed", "refused", "absent", "untried"]

STEPS = 2
GLOBAL_BATCH = 16
LEARNING_RATE = 0.001
"""Low, so that the order in which workers step on their own makes no difference that counts."""
MICRO_BATCHES = 2
NO_DROPOUT = 1e-9
"""Below what a 32-bit random number resolves: the layer does its work and drops nothing, so weights can be compared."""


class Case(NamedTuple):
    """One combination; `name` is how results and reports call it. A job that takes no `steps` is judged by several."""

    strategy: str
    aggregation: str
    precision: str
    jit: bool
    steps: bool = True

    @property
    def name(self) -> str:
        """`mirrored/mean/float16/xla`, without XLA `mirrored/mean/float16/plain`."""
        return f"{self.strategy}/{self.aggregation}/{self.precision}/{'xla' if self.jit else 'plain'}"


def aggregations() -> tuple[str, ...]:
    """As the contract lists them."""
    return typing.get_args(Aggregation.model_fields["method"].annotation)


def precisions() -> tuple[str, ...]:
    """As the contract lists them."""
    return typing.get_args(Training.model_fields["mixed_precision"].annotation)


def cases() -> tuple[Case, ...]:
    """Every case, strategy by strategy."""
    return tuple(case for strategy in catalog.entries("strategy") for case in cases_of(strategy))


def cases_of(strategy: str) -> tuple[Case, ...]:
    """Those of one strategy, in the order in which they are tried and shown."""
    return tuple(
        Case(strategy, aggregation, precision, jit)
        for aggregation in aggregations()
        for precision in precisions()
        for jit in (False, True)
    )


def case_of(spec: JobSpec) -> Case:
    """The case that a job is an instance of."""
    training = spec.training
    if spec.kind != "train":
        return Case(spec.strategy.name, "mean", training.mixed_precision, jit=False, steps=False)
    return Case(spec.strategy.name, training.aggregation.method, training.mixed_precision, training.jit)


def failure(case: Case, result: SelfTest) -> str:
    """The sentence with which the case failed; empty when it passed or was never tried."""
    judging = _judging(case)
    if any(each in result.passed for each in judging):
        return ""
    return next((result.failures[each] for each in judging if each in result.failures), "")


def _judging(case: Case) -> list[str]:
    """Where no steps are taken no gradients are put together and nothing is compiled: whatever works will do."""
    if case.steps:
        return [case.name]
    return [each.name for each in cases_of(case.strategy) if each.precision == case.precision]


def spec_of(case: Case) -> JobSpec:
    """The training that tries the case: convolution, batch normalization, dropout and dense layers, two steps.

    The strategy's own defaults make it two devices or processes. Raises SpecInvalid with what the contract refuses.
    """
    entry = catalog.find("strategy", case.strategy)
    # XLA does not compile a normalization that talks over replicas; the contract says so of every such job.
    normalized = not (case.jit and entry.module.layout(entry.options()).replicas > 1)
    training = _training(case.aggregation) | {"mixed_precision": case.precision, "jit": case.jit}
    return parse(_document({"name": case.strategy}, training, normalized=normalized))


def reference_of(spec: JobSpec) -> JobSpec:
    """The same steps on one device in 32 bits without XLA: what the case's weights are compared with."""
    plain = {"mixed_precision": "none", "jit": False, "global_batch": spec.samples_per_step // spec.micro_batches}
    training = spec.training.model_dump(mode="json", exclude_none=True) | plain
    return parse({**spec.to_dict(), "strategy": {"name": "one_device"}, "training": training})


@functools.cache
def refusal(case: Case) -> str:
    """The sentence with which the contract refuses the case; empty when it does not."""
    try:
        spec_of(case)
    except SpecInvalid as error:
        problem = error.problems[0]
        return f"{problem.path}: {problem.message}. {problem.remedy}"
    return ""


def verdict(case: Case, result: SelfTest) -> tuple[Verdict, str]:
    """What a result says of a case, with the sentence where it does not work."""
    if refusal(case):
        return "refused", refusal(case)
    if case.strategy in result.unavailable:
        return "absent", result.unavailable[case.strategy]
    if case.name in result.failures:
        return "failed", result.failures[case.name]
    return ("ok" if case.name in result.passed else "untried"), ""


def is_complete(result: SelfTest) -> bool:
    """Whether there is nothing left to try; a new strategy is tried without all others."""
    return all(verdict(case, result)[0] != "untried" for case in cases())


def nearest(case: Case, working: Container[str]) -> tuple[str, str]:
    """The field that is to blame for a case that fails, and what works instead: the smallest change that is known to.

    `working` holds the names of cases that pass.
    """
    changes = (
        ("training.jit", "Switch it off", case._replace(jit=False)),
        ("training.mixed_precision", "Use none", case._replace(precision="none")),
        ("training.aggregation.method", "Use mean", case._replace(aggregation="mean")),
    )
    for path, remedy, other in changes:
        if other != case and any(each in working for each in _judging(other)):
            return path, remedy
    return "strategy.name", "Choose another strategy"


def _training(aggregation: str) -> dict[str, Any]:
    # A sum is larger than a mean by the batch; the weights should move alike.
    rate = LEARNING_RATE / GLOBAL_BATCH if aggregation == "sum" else LEARNING_RATE
    local = {"micro_batches": MICRO_BATCHES} if aggregation == "local" else {}
    return {
        "steps": STEPS,
        "steps_per_call": STEPS,
        "global_batch": GLOBAL_BATCH,
        "validation_split": 0,
        "optimizer": {"name": "sgd", "learning_rate": rate},
        "aggregation": {"method": aggregation, **local},
    }


def _document(strategy: dict[str, Any], training: dict[str, Any], *, normalized: bool) -> dict[str, Any]:
    model = {"filters": [4], "units": 8, "dropout": NO_DROPOUT, "activation": "silu", "pooling": "average"}
    return {
        "version": "lockstep/v1",
        "name": "self-test",
        "dataset": {"name": "synthetic_images", "options": {"shape": [4, 4, 1], "classes": 4, "samples": 64}},
        "model": {"name": "cnn", "options": {**model, "batch_norm": normalized}},
        "strategy": strategy,
        "training": training,
    }
