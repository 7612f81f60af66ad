"""An autoencoder: squeezes each example into a few values and draws it again; it needs no targets."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal

from pydantic import Field

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo, Task, ids_refused
from workers.contract.problems import Problem

title = "Autoencoder"
summary = "Learns to draw its input again out of a few values, by squared error. For any numbers; classes are not used."
task: Task = "reconstruction"


class Options(_Options):
    """Dense for anything, convolutional for pictures."""

    kind: Literal["dense", "convolution"] = Field(
        "dense", title="Kind", description="Dense layers for any numbers, convolutions for pictures."
    )
    units: tuple[Annotated[int, Field(ge=1, le=65_536)], ...] = Field(
        (128,),
        title="Units",
        description="Width of each dense layer down to the code, and up again in turn; for dense.",
        max_length=50,
    )
    filters: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = Field(
        (16, 32),
        title="Filters",
        description="Filters of each convolution down to the code, which each halves the picture; for convolution.",
        min_length=1,
        max_length=12,
    )
    code: int = Field(16, ge=1, le=65_536, title="Code", description="Values that an example is squeezed into.")


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """It needs plain numbers; convolutions need pictures that can be halved and doubled again."""
    problems = ids_refused(info, "autoencoder")
    if problems or options.kind == "dense":
        return problems
    if len(info.shape) != 3:
        return [Problem("options.kind", f"needs pictures, and the data is {info.words}", options.kind, "Choose dense")]
    most = min(_halvings(side) for side in info.shape[:2])
    if len(options.filters) > most:
        message = f"halve a picture of {info.shape[0]} x {info.shape[1]} pixels too often to double it again"
        remedy = f"Give at most {most} values" if most else "Choose the kind dense"
        return [Problem("options.filters", message, list(options.filters), remedy)]
    return []


def build_model(info: DatasetInfo, options: Options) -> Any:
    """A keras.Model from [batch, *shape] to float32 [batch, *shape]."""
    import keras

    entry = keras.Input(info.shape)
    hidden = (_dense if options.kind == "dense" else _convolution)(entry, options)
    if options.kind == "dense":
        hidden = keras.layers.Dense(info.features, dtype="float32")(hidden)
        drawn = keras.layers.Reshape(info.shape, dtype="float32", name="drawn")(hidden)
    else:
        drawn = keras.layers.Conv2D(info.shape[2], 3, padding="same", dtype="float32", name="drawn")(hidden)
    return keras.Model(entry, drawn, name="autoencoder")


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """Trainable weights."""
    if options.kind == "dense":
        widths = (info.features, *options.units, options.code, *reversed(options.units), info.features)
        return sum((width + 1) * after for width, after in itertools.pairwise(widths))
    height, width, channels = info.shape
    flat = (height >> len(options.filters)) * (width >> len(options.filters)) * options.filters[-1]
    down = (channels, *options.filters)
    up = (options.filters[-1], *reversed(options.filters), channels)
    convolutions = sum((9 * before + 1) * after for row in (down, up) for before, after in itertools.pairwise(row))
    return convolutions + (flat + 1) * options.code + (options.code + 1) * flat


def _dense(entry: Any, options: Options) -> Any:
    import keras

    hidden = keras.layers.Flatten()(entry)
    for units in options.units:
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
    hidden = keras.layers.Dense(options.code, name="code")(hidden)
    for units in reversed(options.units):
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
    return hidden


def _convolution(entry: Any, options: Options) -> Any:
    import keras

    hidden = entry
    for filters in options.filters:
        hidden = keras.layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(hidden)
    smallest = hidden.shape[1:]
    code = keras.layers.Dense(options.code, name="code")(keras.layers.Flatten()(hidden))
    flat = keras.layers.Dense(smallest[0] * smallest[1] * smallest[2], activation="relu")(code)
    hidden = keras.layers.Reshape(smallest)(flat)
    for filters in reversed(options.filters):
        hidden = keras.layers.UpSampling2D(2)(hidden)
        hidden = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(hidden)
    return hidden


def _halvings(side: int) -> int:
    """How often `side` can be halved without a rest."""
    return (side & -side).bit_length() - 1
