"""An autoencoder: squeezes each example into a few values and draws it again; it needs no targets."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal, NamedTuple

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
    return sum((layer.pixels * layer.before + 1) * layer.after for layer in _layers(info, options))


def kernels(info: DatasetInfo, options: Options) -> dict[str, tuple[int, ...]]:
    """Each layer by its outputs and its inputs."""
    return {layer.name: (layer.after, layer.before) for layer in _layers(info, options)}


class _Layer(NamedTuple):
    """A layer with weights by its name for people; `pixels` is how many of them one filter sees."""

    name: str
    before: int
    after: int
    pixels: int = 1


def _layers(info: DatasetInfo, options: Options) -> list[_Layer]:
    """From the example to the code and back to what is drawn."""
    numbers = range(len(options.units if options.kind == "dense" else options.filters))
    field = f"model.options.{'units' if options.kind == 'dense' else 'filters'}"
    down = [f"{field}.{number}" for number in numbers]
    up = [f"{name} on the way back" for name in reversed(down)]
    if options.kind == "dense":
        widths = (info.features, *options.units, options.code, *reversed(options.units), info.features)
        names = [*down, "model.options.code", *up, "what is drawn"]
        return [_Layer(name, *pair) for name, pair in zip(names, itertools.pairwise(widths), strict=True)]
    height, width, channels = info.shape
    flat = (height >> len(options.filters)) * (width >> len(options.filters)) * options.filters[-1]
    before = itertools.pairwise((channels, *options.filters))
    after = itertools.pairwise((options.filters[-1], *reversed(options.filters), channels))
    return [
        *(_Layer(name, *pair, pixels=9) for name, pair in zip(down, before, strict=True)),
        _Layer("model.options.code", flat, options.code),
        _Layer("model.options.code on the way back", options.code, flat),
        *(_Layer(name, *pair, pixels=9) for name, pair in zip([*up, "what is drawn"], after, strict=True)),
    ]


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
