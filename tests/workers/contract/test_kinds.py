"""Kinds of job that take no steps: what they need of a spec, and what is refused in which words."""

from __future__ import annotations

from typing import Any

import pytest

from workers.contract.kinds import lacks_weights
from workers.contract.problems import SpecInvalid
from workers.contract.spec import JobSpec, parse

IMAGES = {"name": "synthetic_images", "options": {"shape": [8, 8, 1], "classes": 10, "samples": 1000}}


def job(kind: str = "evaluate", **changes: Any) -> dict[str, Any]:
    return {
        "version": "lockstep/v1",
        "name": "use",
        "kind": kind,
        "dataset": {"name": "digits"},
        "model": {"name": "mlp"},
        "strategy": {"name": "mirrored", "options": {"devices": 2}},
        "resume": {"job": 1, "checkpoint": "step-5"},
        **changes,
    }


@pytest.mark.parametrize("kind", ["evaluate", "predict", "export"])
def test_it_needs_no_length_and_takes_no_steps(kind: str) -> None:
    spec = parse(job(kind))
    assert (spec.total_steps, spec.steps_per_epoch) == (0, 1)
    assert parse(spec.to_yaml()) == spec


def test_it_does_not_mind_settings_of_the_training_that_its_weights_come_from() -> None:
    training = {"epochs": 3, "global_batch": 9_999, "warmup_steps": 5, "label_smoothing": 0.1, "class_weights": {77: 1}}
    assert parse(job(training=training)).training.global_batch == 9_999


def test_it_knows_whether_weights_were_named() -> None:
    assert not lacks_weights(parse(job()))
    assert lacks_weights(parse(job(resume=None)))
    assert not lacks_weights(parse(job(resume=None, training={"initial_model": "x.keras"})))
    assert not lacks_weights(parse(job("train", resume=None, training={"epochs": 1})))


def test_predicting_takes_the_test_examples_where_there_are_any_else_all() -> None:
    digits: JobSpec = parse(job("predict"))
    assert (digits.predicted, digits.held_out) == ("all", 0.0)
    some = parse(job("predict", predict={"split": "validation"}))
    assert (some.predicted, some.held_out) == ("validation", 0.2)
    assert parse(job("predict", dataset={"name": "fashion_mnist"})).predicted == "test"


@pytest.mark.parametrize(
    ("document", "path", "said"),
    [
        (job("predict", predict={"split": "test"}), "predict.split", "is empty: digits has no test examples"),
        (
            job("predict", predict={"split": "validation"}, training={"validation_split": 0}),
            "predict.split",
            "is empty: training.validation_split holds none out",
        ),
        (job(predict={"split": "all"}), "predict", "is for jobs that predict, and this one is to evaluate"),
        (job("predict", dataset=IMAGES, model={"name": "gan"}), "model.name", "predict nothing of an example"),
        (job("fly"), "kind", "must be 'train'"),
    ],
)
def test_it_refuses_in_words(document: dict[str, Any], path: str, said: str) -> None:
    with pytest.raises(SpecInvalid) as refused:
        parse(document)
    [problem] = refused.value.problems
    assert problem.path == path
    assert said in problem.message
