"""Which settings of the loss and of its watching make sense for what a job trains; all else is refused in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.contract import catalog
from workers.contract.metrics import evaluated_metrics
from workers.contract.problems import Problem

if TYPE_CHECKING:
    from workers.contract.spec import JobSpec

WORDS = {
    "classification": "classification",
    "regression": "regression",
    "language_model": "a language model",
    "reconstruction": "reconstruction",
    "adversarial": "two networks against one another",
}


def objective_problems(spec: JobSpec) -> list[Problem]:
    """Class weights, label smoothing and early stopping against the job's task and its validation split."""
    return [*_smoothing(spec), *_class_weights(spec), *_early_stopping(spec), *_players(spec)]


def _players(spec: JobSpec) -> list[Problem]:
    """Several losses with an optimizer each need replicas that step together, and one scale for all of them."""
    if spec.task != "adversarial":
        return []
    problems = []
    strategy = catalog.find("strategy", spec.strategy.name).module
    if getattr(strategy, "one_loss_only", False) and not spec.layout.asynchronous:
        message = f"computes one loss, and {spec.model.name} has two"
        problems.append(Problem("strategy.name", message, spec.strategy.name, "Use mirrored or multi_worker_mirrored"))
    if spec.layout.asynchronous:
        message = f"steps each worker on its own, and the two networks of {spec.model.name} must step together"
        remedy = "Use multi_worker_mirrored, or mirrored on one host"
        problems.append(Problem("strategy.name", message, spec.strategy.name, remedy))
    if spec.training.mixed_precision == "float16":
        message = f"needs one loss to scale, and {spec.model.name} has two"
        problems.append(Problem("training.mixed_precision", message, "float16", "Use bfloat16 or none"))
    return problems


def _smoothing(spec: JobSpec) -> list[Problem]:
    given = spec.training.label_smoothing
    if not given or spec.task in ("classification", "language_model"):
        return []
    message = f"spreads a class over all classes, and this job trains {WORDS[spec.task]}"
    return [Problem("training.label_smoothing", message, given, "Use 0")]


def _class_weights(spec: JobSpec) -> list[Problem]:
    given, path = spec.training.class_weights, "training.class_weights"
    if given is None:
        return []
    classes = spec.dataset_info.classes
    if spec.task != "classification" or classes is None:
        return [Problem(path, f"weigh classes, and this job trains {WORDS[spec.task]}", given, "Leave them out")]
    if given == "balanced" and spec.dataset_info.files is not None:
        message = "counts the examples of each class, and this data is read from disk while training"
        return [Problem(path, message, given, "Name the weight of each class, such as 0: 1, 1: 2.5")]
    strays = sorted(set(given) - set(range(classes))) if given != "balanced" else []
    if strays:
        message = f"name class {strays[0]}, and the data has {classes}"
        return [Problem(path, message, given, f"Name classes 0 to {classes - 1}")]
    if given != "balanced" and len(given) == classes and not any(given.values()):
        return [Problem(path, "weigh every class 0, so there is nothing to learn", given, "Leave one above 0")]
    return []


def _early_stopping(spec: JobSpec) -> list[Problem]:
    stopping = spec.training.early_stopping
    if stopping is None:
        return []
    if not spec.training.validation_split:
        message = "watches what is held out, and validation_split is 0"
        return [Problem("training.early_stopping", message, stopping.watched, "Hold out a part, such as 0.1")]
    offered = [f"val_{name}" for name in evaluated_metrics(spec.task)]
    if stopping.watched not in offered:
        message = f"is not reported by {WORDS[spec.task]}"
        remedy = f"Use one of {', '.join(offered)}"
        return [Problem("training.early_stopping.metric", message, stopping.metric, remedy)]
    return []
