"""Settings of the loss and of its watching: refused, in words, where they make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workers.training.conftest import seed_with
from workers.contract.problems import SpecInvalid
from workers.contract.spec import parse

REGRESSION = {"dataset": {"name": "diabetes"}, "model": {"name": "linear"}}
SMALL = {"global_batch": 64}


def refused(training: dict[str, Any], **changes: Any) -> dict[str, str]:
    with pytest.raises(SpecInvalid) as caught:
        parse(seed_with(**changes, training={**SMALL, **training}))
    return {problem.path: str(problem) for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"label_smoothing": 0.1}, "trains regression"),
        ({"class_weights": "balanced"}, "trains regression"),
        ({"early_stopping": {"patience": 2, "metric": "val_accuracy"}}, "Use one of val_loss, val_mean_absolute_error"),
    ],
)
def test_it_refuses_for_regression_what_is_about_classes(training: dict[str, Any], said: str) -> None:
    [(path, text)] = refused(training, **REGRESSION).items()
    assert path.startswith(f"training.{next(iter(training))}")
    assert said in text


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"10": 2}, "name class 10, and the data has 10"),
        ({"0": -1}, "of 0 or more by class"),
        ({str(digit): 0 for digit in range(10)}, "nothing to learn"),
        ("even", "balanced"),
    ],
)
def test_it_refuses_class_weights_that_weigh_nothing(weights: Any, said: str) -> None:
    assert said in refused({"class_weights": weights})["training.class_weights"]


def test_it_reads_class_weights_of_yaml_and_json_alike() -> None:
    for given in ({0: 1.5, 3: 2}, {"0": 1.5, "3": 2}):
        assert parse(seed_with(training={"class_weights": given})).training.class_weights == {0: 1.5, 3: 2.0}


def test_it_refuses_to_watch_what_is_not_held_out() -> None:
    problems = refused({"early_stopping": {"patience": 2}, "validation_split": 0})
    assert "validation_split is 0" in problems["training.early_stopping"]


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ({"kind": "step"}, "needs every_steps and factor"),
        ({"kind": "step", "every_steps": 2, "factor": 2}, "at most 1"),
        ({"kind": "cosine", "factor": 0.5}, "cosine takes no factor"),
        ({"final": 0.5}, "constant takes no final"),
        ({"kind": "linear"}, "constant"),
    ],
)
def test_it_refuses_a_schedule_that_says_too_little_or_too_much(schedule: dict[str, Any], said: str) -> None:
    [text] = refused({"schedule": schedule}).values()
    assert said in text


def test_it_trains_what_the_model_says() -> None:
    assert parse(seed_with()).task == "classification"
    assert parse(seed_with(model={"name": "autoencoder"})).task == "reconstruction"
    assert parse(seed_with(**REGRESSION, training=SMALL)).task == "regression"


def test_it_refuses_two_optimizers_where_workers_step_each_on_their_own() -> None:
    problems = refused({"mixed_precision": "float16"}, model={"name": "gan"}, strategy={"name": "parameter_server"})
    assert "Use multi_worker_mirrored, or mirrored on one host" in problems["strategy.name"]
    assert "training.mixed_precision" in problems


@pytest.mark.parametrize("model", ["mobilenet", "efficientnet"])
def test_it_refuses_on_a_mesh_what_has_no_layout_there(model: str) -> None:
    problems = refused({}, model={"name": model}, strategy={"name": "model_parallel"})
    assert f"cannot train {model}" in problems["strategy.name"]
    predict = seed_with(kind="predict", model={"name": model}, strategy={"name": "model_parallel"}, training=SMALL)
    assert parse(predict).kind == "predict"


def of_a_file(**found: Any) -> dict[str, Any]:
    facts = {"inputs": [8, 8, 1], "outputs": 10, "parameters": 20, "trainable": 20, "bytes": 80, **found}
    return {"name": "keras_file", "options": {"file": "net.keras", "facts": facts}}


def test_it_refuses_on_a_mesh_to_train_depthwise_layers_of_a_file() -> None:
    model = of_a_file(obstacles=[{"trait": "depthwise", "layer": "cheap", "kind": "SeparableConv2D"}])
    problems = refused({}, model=model, strategy={"name": "model_parallel"})
    said = "cannot train the layer cheap (SeparableConv2D): DTensor has no layout for the gradient of a depthwise"
    assert said in problems["strategy.name"]
    assert parse(seed_with(kind="predict", model=model, strategy={"name": "model_parallel"}, training=SMALL))


@pytest.mark.parametrize(
    ("trait", "said", "remedy"),
    [
        ("loop", "cannot compile its loop", "Make the layer with unroll=True, or use mirrored"),
        ("dilated", "cannot compile a dilated convolution", "Use mirrored or multi_worker_mirrored"),
    ],
)
@pytest.mark.parametrize("kind", ["train", "predict"])
def test_it_refuses_on_a_mesh_layers_of_a_file_that_dtensor_cannot_compile(
    kind: str, trait: str, said: str, remedy: str
) -> None:
    model = of_a_file(obstacles=[{"trait": trait, "layer": "back/gru", "kind": "GRU"}])
    problems = refused({}, kind=kind, model=model, strategy={"name": "model_parallel"})
    assert f"the layer back/gru (GRU): DTensor {said}" in problems["strategy.name"]
    assert remedy in problems["strategy.name"]


def test_it_refuses_a_mesh_that_does_not_divide_the_weights_of_a_file() -> None:
    strategy = {"name": "model_parallel", "options": {"mesh": {"batch": 1, "model": 4}}}
    problems = refused({}, model=of_a_file(kernels={"dense": [10, 7]}), strategy=strategy)
    said = "cannot split the weights of dense: neither 10 nor 7 is a multiple of 4 (got 4). Nearest that can: 2 or 5"
    assert problems["strategy.options.mesh.model"].endswith(said)
