"""How the learning rate falls once it is warm, and when a job that learns no more ends early."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from workers.contract.base import Strict
from workers.contract.metrics import Validated

ADVANCED: dict[str, JsonValue] = {"advanced": True}
OWN = {"step": ("every_steps", "factor"), "cosine": ("final",)}
"""Which settings belong to which kind of schedule."""


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
        title="Falls every",
        description="Steps between two falls of a step schedule.",
        json_schema_extra={"advanced": True, "unit": "steps"},
    )
    factor: float | None = Field(
        None,
        gt=0,
        le=1,
        title="Factor",
        description="What each fall of a step schedule leaves, such as 0.5.",
        json_schema_extra=ADVANCED,
    )
    final: float | None = Field(
        None,
        ge=0,
        le=1,
        title="Final part",
        description="Part of the peak at the last step of a cosine schedule; 0 if empty.",
        json_schema_extra=ADVANCED,
    )

    @model_validator(mode="after")
    def _each_its_own(self) -> Schedule:
        if self.kind == "step" and (self.every_steps is None or self.factor is None):
            raise ValueError("step needs every_steps and factor: say when it falls and what it leaves, such as 0.5")
        given = {name for names in OWN.values() for name in names if getattr(self, name) is not None}
        stray = ", ".join(sorted(given - set(OWN.get(self.kind, ()))))
        if stray:
            raise ValueError(f"{self.kind} takes no {stray}: remove it, or choose the kind that it belongs to")
        return self


class EarlyStopping(Strict):
    """Ends the job at the end of an epoch when a validated metric has not become better for `patience` epochs."""

    patience: int = Field(
        ge=1,
        le=100_000,
        title="Patience",
        description="Epochs without improvement after which the job ends; empty trains to the end.",
        json_schema_extra={"advanced": True, "unit": "epochs"},
    )
    metric: Validated | None = Field(
        None,
        title="Metric",
        description="What has to improve; val_loss if none is named.",
        json_schema_extra=ADVANCED,
    )
    min_delta: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        title="Least improvement",
        description="What must change for the better to count; any change if empty.",
        json_schema_extra=ADVANCED,
    )

    @property
    def watched(self) -> Validated:
        """The metric's name."""
        return self.metric or "val_loss"
