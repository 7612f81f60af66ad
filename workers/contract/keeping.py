"""What a job leaves behind while it trains and after: checkpoints, what to go on from, and exports."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from workers.contract.base import Strict
from workers.contract.data import Task
from workers.contract.metrics import Validated, evaluated_metrics
from workers.contract.problems import Problem

ADVANCED: dict[str, JsonValue] = {"advanced": True}
CHECKPOINT_NAME = r"^step-\d{1,12}$"

Export = Literal["keras", "saved_model"]


class Checkpoint(Strict):
    """When checkpoints are written, and which stay. One is always written at the end, and one when a job is paused."""

    every_steps: int | None = Field(
        None,
        ge=1,
        le=1_000_000_000,
        title="Every N steps",
        description="A checkpoint after each so many optimizer steps.",
        json_schema_extra={"unit": "steps"},
    )
    every_minutes: float | None = Field(
        None,
        gt=0,
        le=100_000,
        allow_inf_nan=False,
        title="Every N minutes",
        description="A checkpoint when so much time has passed since the last one.",
        json_schema_extra={"unit": "minutes"},
    )
    keep: int = Field(2, ge=1, le=1000, title="Keep", description="The newest so many stay; older ones are removed.")
    best: Literal["loss", Validated] | None = Field(
        None,
        title="Keep the best by",
        description="The checkpoint with the best value of this metric stays as well.",
        json_schema_extra=ADVANCED,
    )

    @model_validator(mode="after")
    def _some_rhythm(self) -> Checkpoint:
        if self.every_steps is None and self.every_minutes is None:
            raise ValueError("give every_steps, every_minutes or both")
        return self


class Resume(Strict):
    """The checkpoint of an earlier job that a job goes on from, under whatever strategy it now has."""

    job: int = Field(ge=1, title="Job", description="The number of the earlier job, of the same team.")
    checkpoint: str = Field(pattern=CHECKPOINT_NAME, title="Checkpoint", description="Its name, such as step-50.")


def check(checkpoint: Checkpoint | None, task: Task, validation_split: float) -> list[Problem]:
    """What a job cannot keep its best checkpoint by; paths as in the spec."""
    best = checkpoint.best if checkpoint is not None else None
    if best is None or best == "loss":
        return []
    if not validation_split:
        message = "is measured on held-out data, and validation_split holds none out"
        return [Problem("checkpoint.best", message, best, "Raise training.validation_split, or use loss")]
    measured = [f"val_{name}" for name in evaluated_metrics(task)]
    if best not in measured:
        message = f"is not measured in {task.replace('_', ' ')}"
        return [Problem("checkpoint.best", message, best, f"Use {' or '.join(measured)}")]
    return []
