"""A small convolutional network: convolution and pooling by turns, then one dense layer."""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any, Literal

from pydantic import Field

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo, ids_refused
from workers.contract.problems import Problem

title = "Convolutional network"
summary = "Convolutions with pooling after each, then one dense layer. For pictures."


class Options(_Options):
    """How many filters, how large, and what follows them."""

    filters: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = Field(
        (32, 64),
        title="Filters",
        description="Filters of each convolution, first to last; the picture is halved after each.",
        min_length=1,
        max_length=12,
    )
    kernel: int = Field(3, ge=1, le=15, title="Kernel", description="Height and width of each filter in pixels.")
    units: int = Field(128, ge=1, le=65_536, title="Units", description="Width of the dense layer.")
    dropout: float = Field(0.3, ge=0, lt=1, title="Dropout", description="Part that is dropped before the logits.")
    activation: Literal["relu", "gelu", "tanh", "silu"] = Field(
        "relu", title="Activation", description="After each hidden layer.", json_schema_extra={"advanced": True}
    )
    pooling: Literal["max", "average"] = Field(
        "max", title="Pooling", description="What is kept of each 2 x 2 pixels.", json_schema_extra={"advanced": True}
    )
    batch_norm: bool = Field(
        False,
        title="Batch normalization",
        description="After each convolution, over the global batch: synchronized between the replicas.",
    )


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """It needs pictures that can be halved after each convolution."""
    if len(info.shape) != 3:
        message = f"needs pictures (height, width, channels), and the data is {info.words}"
        return ids_refused(info, "cnn") or [
            Problem("name", message, "cnn", "Choose mlp or linear, or a dataset of pictures")
        ]
    most = min(info.shape[:2]).bit_length() - 1
    if len(options.filters) > most:
        message = f"halve a picture of {info.shape[0]} x {info.shape[1]} pixels too often"
        remedy = f"Give at most {most} values" if most else "Choose mlp or linear"
        return [Problem("options.filters", message, list(options.filters), remedy)]
    return []


def synchronizes(options: Options) -> bool:
    """Batch normalization takes its statistics over all replicas."""
    return options.batch_norm


def build_model(info: DatasetInfo, options: Options) -> Any:
    """A keras.Model from [batch, height, width, channels] to float32 [batch, outputs] logits."""
    import keras

    pool = keras.layers.MaxPooling2D if options.pooling == "max" else keras.layers.AveragePooling2D
    entry = hidden = keras.Input(info.shape)
    for filters in options.filters:
        hidden = keras.layers.Conv2D(filters, options.kernel, padding="same")(hidden)
        if options.batch_norm:
            hidden = keras.layers.BatchNormalization(synchronized=True)(hidden)
        hidden = keras.layers.Activation(options.activation)(hidden)
        hidden = pool(2)(hidden)
    hidden = keras.layers.Dense(options.units, activation=options.activation)(keras.layers.Flatten()(hidden))
    if options.dropout:
        hidden = keras.layers.Dropout(options.dropout)(hidden)
    return keras.Model(entry, keras.layers.Dense(info.outputs, dtype="float32", name="logits")(hidden), name="cnn")


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """All weights; the two moving statistics of each normalized filter are not trained."""
    height, width, channels = info.shape
    depth = len(options.filters)
    pairs = itertools.pairwise((channels, *options.filters))
    extra = 5 if options.batch_norm else 1
    convolutions = sum((options.kernel**2 * before + extra) * after for before, after in pairs)
    flat = (height >> depth) * (width >> depth) * options.filters[-1]
    return convolutions + (flat + 1) * options.units + (options.units + 1) * info.outputs


def kernels(info: DatasetInfo, options: Options) -> dict[str, tuple[int, ...]]:
    """Each convolution by its filters and its channels, each dense layer by its outputs and its inputs."""
    flat = math.prod(size >> len(options.filters) for size in info.shape[:-1]) * options.filters[-1]
    found: dict[str, tuple[int, ...]] = {}
    for number, (before, after) in enumerate(itertools.pairwise((info.shape[-1], *options.filters))):
        found[f"model.options.filters.{number}"] = (after, before)
    found["model.options.units"] = (options.units, flat)
    found["the logits"] = (info.outputs, options.units)
    return found
