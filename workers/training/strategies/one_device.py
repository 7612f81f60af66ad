"""One replica on one device: the yardstick for every other strategy."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from workers.contract.assignment import Place
from workers.contract.base import Options as _Options
from workers.contract.layout import Layout, ProcessShape

title = "One device"
summary = "One process, one replica, one device. No communication: what the others are measured against."


class Options(_Options):
    """Which device."""

    device: Literal["auto", "cpu", "gpu"] = Field(
        "auto", title="Device", description="Auto takes a GPU where there is one, else a CPU."
    )
    index: int | None = Field(
        None,
        ge=0,
        le=1023,
        title="Index",
        description="Which device of the host; empty for any free one.",
        json_schema_extra={"advanced": True},
    )


def layout(options: Options) -> Layout:
    """One process with one device."""
    indexes = () if options.index is None else (options.index,)
    return Layout(processes=(ProcessShape(kind=options.device, devices=1, indexes=indexes),))


def create(options: Options, place: Place) -> Any:
    """A tf.distribute.OneDeviceStrategy."""
    import tensorflow as tf

    return tf.distribute.OneDeviceStrategy("/gpu:0" if place.process.kind == "gpu" else "/cpu:0")
