"""How the learning rate falls once it is warm, and when a job that learns no more ends early."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from workers.contract.base import Strict

ADVANCED: dict[str, JsonValue] = {"advanced": True}


class Schedule(Strict):
    """What becomes of the peak learning rate; t counts the steps since it was reached (at step 1 without warm-up).

    constant keeps it. step multiplies it by `factor` after each `every_steps`: peak * factor ** (t // every_steps).
    cosine lets it fall to `final` of the peak at the job's last step: half a cosine (Loshchilov and Hutter, 2017).
    """

    kind: Literal["constant", "step", "cosine"] = Field(
        "constant",
        title="Schedule",
        description="Constant; step, which multiplies the learning rate every so many steps; or cosine, which lets it "
        "fall until the last step.",
    )
    every_steps: int | None = Field(
        None,
        ge=1,
        le=1_000_000_000,
        title="Schedule: every",
        description="Steps between two falls; for step only.",
        json_schema_extra={"advanced": True, "unit": "steps"},
    )
    factor: float | None = Field(
        None,
        gt=0,
        le=1,
        title="Schedule: factor",
        description="What each fall leaves of the learning rate; for step only.",
        json_schema_extra=ADVANCED,
    )
    final: float | None = Field(
        None,
        ge=0,
        le=1,
        title="Schedule: final part",
        description="Part of the peak at the last step, 0 if empty; for cosine only.",
        json_schema_extra=ADVANCED,
    )

    @model_validator(mode="after")
    def _each_its_own(self) -> Schedule:
        if self.kind == "step" and (self.every_steps is None or self.factor is None):
            raise ValueError("step needs every_steps and factor: say when it falls and what it leaves, such as 0.5")
        own = {"step": {"every_steps", "factor"}, "cosine": {"final"}}.get(self.kind, set())
        given = {name for name in ("every_steps", "factor", "final") if getattr(self, name) is not None}
        if given - own:
            stray = ", ".join(sorted(given - own))
            raise ValueError(f"{self.kind} takes no {stray}: remove it, or choose the kind that it belongs to")
        return self


class EarlyStopping(Strict):
    """Ends the job at the end of an epoch when a validated metric has not become better for `patience` epochs."""

    patience: int = Field(
        ge=1,
        le=100_000,
        title="Early stopping: patience",
        description="Epochs without improvement after which the job ends; empty trains to the end.",
        json_schema_extra={"advanced": True, "unit": "epochs"},
    )
    metric: str | None = Field(
        None,
        max_length=100,
        title="Early stopping: metric",
        description="What has to improve, such as val_accuracy; val_loss if empty.",
        json_schema_extra=ADVANCED,
    )
    min_delta: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        title="Early stopping: least improvement",
        description="What must change for the better to count; any change if empty.",
        json_schema_extra=ADVANCED,
    )

    @property
    def watched(self) -> str:
        """The metric's name."""
        return self.metric or "val_loss"
