"""The names of the series that the engine reports, with their units: one place for engine, charts and tables."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Metric(NamedTuple):
    """`better` says which end of the scale wins in comparisons; None where neither does."""

    title: str
    unit: str = ""
    better: Literal["min", "max"] | None = None
    per_replica: bool = False


METRICS: dict[str, Metric] = {
    "loss": Metric("Loss", "", "min"),
    "accuracy": Metric("Accuracy", "", "max"),
    "mean_absolute_error": Metric("Mean absolute error", "", "min"),
    "val_loss": Metric("Validation loss", "", "min"),
    "val_accuracy": Metric("Validation accuracy", "", "max"),
    "val_mean_absolute_error": Metric("Validation mean absolute error", "", "min"),
    "test_loss": Metric("Test loss", "", "min"),
    "test_accuracy": Metric("Test accuracy", "", "max"),
    "test_mean_absolute_error": Metric("Test mean absolute error", "", "min"),
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
