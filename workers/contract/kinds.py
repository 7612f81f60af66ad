"""What a job does with a model: train it, or put weights that are there already to use without taking a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workers.contract.base import Strict
from workers.contract.events import PhaseName
from workers.contract.problems import Problem

if TYPE_CHECKING:
    from workers.contract.spec import JobSpec

JobKind = Literal["train", "evaluate", "predict", "export"]
WORK: dict[JobKind, PhaseName] = {
    "train": "training",
    "evaluate": "evaluating",
    "predict": "predicting",
    "export": "saving",
}
"""The phase in which a job of that kind does what it is for."""
PREDICTIONS = "predictions.parquet"
"""The file of the run folder that a job of the kind predict leaves."""
SPLIT = "predict.split"


class Predict(Strict):
    """Which examples to predict. There is one row for each of them, in the data's own order."""

    split: Literal["auto", "test", "validation", "training", "all"] = Field(
        "auto",
        title="Examples to predict",
        description="Test, validation or training examples, or all of them, the test ones last. Auto takes the test "
        "examples where the dataset has any, else all.",
    )


def kind_problems(spec: JobSpec) -> list[Problem]:
    """What a job that takes no steps cannot do; paths as in the spec."""
    if spec.kind == "train":
        return _length(spec) + _predict(spec)
    return [*_predict(spec), *_split(spec)]


def lacks_weights(spec: JobSpec) -> bool:
    """Whether such a job has nothing to work with yet; by hand a checkpoint may still be given beside the spec."""
    given = spec.resume or spec.training.initial_model
    # A model out of a file may bring its own.
    return spec.kind != "train" and not given and getattr(spec.options_of("model"), "weights", "") != "file"


def fitting(spec: JobSpec) -> str:
    """The kind of data that a model was made for, in words: weights fit other data of which the same is said."""
    info = spec.dataset_info
    width = f"{info.classes} classes" if info.classes else f"{info.outputs} outputs"
    return f"{info.words} with {width} ({spec.task.replace('_', ' ')})"


def _length(spec: JobSpec) -> list[Problem]:
    if (spec.training.epochs is None) != (spec.training.steps is None):
        return []
    return [Problem("training", "give either epochs or steps, not both and not neither")]


def _predict(spec: JobSpec) -> list[Problem]:
    if spec.predict is None or spec.kind == "predict":
        return []
    message = "is for jobs that predict, and this one is to " + spec.kind
    return [Problem("predict", message, spec.predict.split, "Leave it out, or set kind to predict")]


def _split(spec: JobSpec) -> list[Problem]:
    if spec.kind != "predict":
        return []
    info, split = spec.dataset_info, spec.predicted
    if spec.task == "adversarial":
        message = f"plays two networks against one another, which predict nothing of an example; {spec.kind} cannot"
        return [Problem("model.name", f"{message} be done", spec.model.name, "Use evaluate or export")]
    if split == "test" and not info.test_samples:
        message = f"is empty: {spec.dataset.name} has no test examples"
        return [Problem(SPLIT, message, split, "Use validation, training or all")]
    if split == "validation" and not spec.training.validation_split:
        message = "is empty: training.validation_split holds none out"
        return [Problem(SPLIT, message, split, "Hold out a part, such as 0.2, or use all")]
    return []
