"""The names of the series that the engine reports, with their units: one place for engine, charts and tables."""

from __future__ import annotations

from typing import Literal, NamedTuple

from workers.contract.data import Task


class Metric(NamedTuple):
    """`better` says which end of the scale wins in comparisons; None where neither does."""

    title: str
    unit: str = ""
    better: Literal["min", "max"] | None = None
    per_replica: bool = False


METRIC_OF: dict[Task, str] = {
    "classification": "accuracy",
    "regression": "mean_absolute_error",
    "language_model": "accuracy",
    "reconstruction": "reconstruction_error",
    "adversarial": "generator_loss",
}
"""What each task reports beside its loss."""


Validated = Literal[
    "val_loss", "val_accuracy", "val_mean_absolute_error", "val_perplexity", "val_reconstruction_error",
    "val_generator_loss",
]  # fmt: skip
"""What any task reports of the examples that are held out."""


def evaluated_metrics(task: Task) -> tuple[str, ...]:
    """Everything that a validation reports, the loss first; without its prefix `val_`."""
    return ("loss", METRIC_OF[task], *(["perplexity"] if task == "language_model" else []))


METRICS: dict[str, Metric] = {
    "loss": Metric("Loss", "", "min"),
    "accuracy": Metric("Accuracy", "", "max"),
    "mean_absolute_error": Metric("Mean absolute error", "", "min"),
    "perplexity": Metric("Perplexity", "", "min"),
    "reconstruction_error": Metric("Reconstruction error", "", "min"),
    "generator_loss": Metric("Generator loss"),
    "val_loss": Metric("Validation loss", "", "min"),
    "val_accuracy": Metric("Validation accuracy", "", "max"),
    "val_mean_absolute_error": Metric("Validation mean absolute error", "", "min"),
    "val_perplexity": Metric("Validation perplexity", "", "min"),
    "val_reconstruction_error": Metric("Validation reconstruction error", "", "min"),
    "val_generator_loss": Metric("Validation generator loss"),
    "test_loss": Metric("Test loss", "", "min"),
    "test_accuracy": Metric("Test accuracy", "", "max"),
    "test_mean_absolute_error": Metric("Test mean absolute error", "", "min"),
    "test_perplexity": Metric("Test perplexity", "", "min"),
    "test_reconstruction_error": Metric("Test reconstruction error", "", "min"),
    "test_generator_loss": Metric("Test generator loss"),
    "throughput": Metric("Throughput", "samples/s", "max"),
    "step_time": Metric("Step time", "s", "min"),
    "input_wait": Metric("Input wait", "s per step", "min"),
    "learning_rate": Metric("Learning rate"),
    "samples_seen": Metric("Samples seen", "samples"),
    "epoch": Metric("Epoch"),
    "utilization": Metric("Utilization", "%", None, per_replica=True),
    "memory": Metric("Memory", "bytes", None, per_replica=True),
    "worker_steps": Metric("Steps by worker", "steps", None, per_replica=True),
}


def metric(name: str) -> Metric:
    """The metric of that name; an unknown one (a plugin's own) is shown by its name."""
    return METRICS.get(name) or Metric(name.replace("_", " ").capitalize())
