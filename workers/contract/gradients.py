"""How the gradients of one step are put together and bounded before the optimizer sees them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from workers.contract.base import Strict

ADVANCED: dict[str, JsonValue] = {"advanced": True}


class Aggregation(Strict):
    """How per-example gradients become one; with B examples in the global batch and M micro-batches.

    mean divides their sum by B. sum does not, so the effective learning rate is B times larger. local adds up M global
    batches on each replica, sums over the replicas once and divides by M * B: a mean over M * B examples.
    """

    method: Literal["mean", "sum", "local"] = Field(
        "mean",
        title="Aggregation",
        description="Mean over the global batch; sum, which makes the effective learning rate larger by the global "
        "batch; or local: several global batches are added up on each replica before one all-reduce.",
        json_schema_extra=ADVANCED,
    )
    micro_batches: int | None = Field(
        None,
        ge=1,
        le=64,
        title="Micro-batches",
        description="Global batches in one optimizer step; for local aggregation only.",
        json_schema_extra=ADVANCED,
    )

    @model_validator(mode="after")
    def _micro_batches_are_local(self) -> Aggregation:
        if self.method == "local" and self.micro_batches is None:
            raise ValueError("local needs micro_batches: say how many global batches go into one step, such as 4")
        if self.method != "local" and (self.micro_batches or 1) > 1:
            raise ValueError(f"{self.method} takes one global batch a step: remove micro_batches or use method local")
        return self


class Clip(Strict):
    """A bound on the gradients, applied to the aggregated ones; exactly one of the three."""

    value: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        title="Clip by value",
        description="Largest magnitude of each single value of a gradient.",
        json_schema_extra=ADVANCED,
    )
    norm: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        title="Clip by norm",
        description="Largest Euclidean norm of each variable's gradient.",
        json_schema_extra=ADVANCED,
    )
    global_norm: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        title="Clip by global norm",
        description="Largest Euclidean norm of all gradients together.",
        json_schema_extra=ADVANCED,
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Clip:
        if sum(bound is not None for bound in (self.value, self.norm, self.global_norm)) != 1:
            raise ValueError("give exactly one of value, norm and global_norm")
        return self
