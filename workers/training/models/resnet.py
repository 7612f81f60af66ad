"""A residual network: He et al., "Deep residual learning for image recognition" (2015), in its version 1.5.

Version 1.5 halves the picture in the 3 x 3 convolution of a bottleneck instead of the 1 x 1 one before it. The last
normalization of each block begins at 0 (Goyal et al. 2017), so that a deep network begins as a shallow one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from pydantic import Field

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo, ids_refused
from workers.contract.problems import Problem

title = "Residual network"
summary = "ResNet-18 or ResNet-50 (version 1.5): convolutions with shortcuts around them. For pictures."

BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}
"""Blocks of each of the four stages."""
EXPANSION = {18: 1, 50: 4}
"""Filters that leave a block, in those of its middle."""
SMALLEST = {"small": 8, "imagenet": 32}
"""Height and width in pixels that leave something for the last stage."""


class Options(_Options):
    """How deep, how wide, and how it begins."""

    depth: Literal[18, 50] = Field(
        18, title="Depth", description="Layers with weights: 18 in blocks of two, 50 in bottlenecks of three."
    )
    stem: Literal["auto", "small", "imagenet"] = Field(
        "auto",
        title="Stem",
        description="How it begins: small keeps the size (3 x 3), imagenet makes it a quarter (7 x 7, then pooling). "
        "Auto takes imagenet for pictures of 64 pixels and more.",
    )
    width: int = Field(
        64,
        ge=1,
        le=1024,
        title="Width",
        description="Filters of the first stage; each of the other three has twice those of the one before.",
    )
    activation: Literal["relu", "gelu", "tanh", "silu"] = Field(
        "relu", title="Activation", description="After each normalization.", json_schema_extra={"advanced": True}
    )
    batch_norm: bool = Field(
        True,
        title="Batch normalization",
        description="After each convolution, over the global batch: synchronized between the replicas. Without it the "
        "convolutions have biases.",
    )
    momentum: float = Field(
        0.9,
        ge=0,
        lt=1,
        title="Momentum",
        description="Of the moving statistics that batch normalization evaluates with.",
        json_schema_extra={"advanced": True},
    )
    dropout: float = Field(0, ge=0, lt=1, title="Dropout", description="Part that is dropped before the logits.")


class _Convolution(NamedTuple):
    """`kernel` is its height and width, `stride` how much smaller it makes the picture."""

    filters: int
    kernel: int
    stride: int


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """It needs pictures that are not halved away."""
    if len(info.shape) != 3:
        message = f"needs pictures (height, width, channels), and the data is {info.words}"
        remedy = "Choose mlp or linear, or a dataset of pictures"
        return ids_refused(info, "resnet") or [Problem("name", message, "resnet", remedy)]
    height, width, _ = info.shape
    stem = _stem_of(options, info.shape)
    least = SMALLEST[stem]
    if min(height, width) >= least:
        return []
    message = f"needs pictures of at least {least} x {least} pixels, and these are {height} x {width}"
    if stem == "imagenet" and min(height, width) >= SMALLEST["small"]:
        return [Problem("options.stem", message, options.stem, "Use small")]
    return [Problem("name", message, "resnet", "Choose cnn, or larger pictures")]


def synchronizes(options: Options) -> bool:
    """Batch normalization takes its statistics over all replicas."""
    return options.batch_norm


def build_model(info: DatasetInfo, options: Options) -> Any:
    """A keras.Model from [batch, height, width, channels] to float32 [batch, outputs] logits."""
    import keras

    small = _stem_of(options, info.shape) == "small"
    entry = keras.Input(info.shape)
    hidden = _convolved(entry, _Convolution(options.width, 3 if small else 7, 1 if small else 2), options)
    hidden = keras.layers.Activation(options.activation)(hidden)
    if not small:
        hidden = keras.layers.MaxPooling2D(3, 2, padding="same")(hidden)
    for stage, blocks in enumerate(BLOCKS[options.depth]):
        for number in range(blocks):
            hidden = _block(hidden, options, options.width << stage, stride=2 if stage and not number else 1)
    hidden = keras.layers.GlobalAveragePooling2D()(hidden)
    if options.dropout:
        hidden = keras.layers.Dropout(options.dropout)(hidden)
    logits = keras.layers.Dense(info.outputs, dtype="float32", name="logits")(hidden)
    return keras.Model(entry, logits, name=f"resnet{options.depth}")


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """All weights; the two moving statistics of each normalized filter are not trained."""
    extra = 4 if options.batch_norm else 1
    convolutions = sum((one.kernel**2 * before + extra) * one.filters for before, one in _convolutions(info, options))
    return convolutions + (_width_of_features(options) + 1) * info.outputs


def kernels(info: DatasetInfo, options: Options) -> dict[str, tuple[int, ...]]:
    """Each convolution by its filters and its channels, the dense layer by its outputs and its inputs."""
    pairs = [(one.filters, before) for before, one in _convolutions(info, options)]
    found: dict[str, tuple[int, ...]] = {
        f"a convolution of {after} filters on {before}": (after, before) for after, before in pairs
    }
    return {**found, "the logits": (info.outputs, _width_of_features(options))}


def _convolutions(info: DatasetInfo, options: Options) -> Iterator[tuple[int, _Convolution]]:
    """Each with the filters before it; their strides are not told."""
    before = options.width
    yield info.shape[-1], _Convolution(before, 3 if _stem_of(options, info.shape) == "small" else 7, 1)
    for stage, blocks in enumerate(BLOCKS[options.depth]):
        path = _path(options, options.width << stage, 1)
        entered, before = before, path[-1].filters
        if stage or entered != before:
            yield entered, _Convolution(before, 1, 1)
        for number in range(blocks):
            widths = (before if number else entered, *(each.filters for each in path))
            yield from zip(widths, path, strict=False)


def _width_of_features(options: Options) -> int:
    """What the last stage leaves of each picture."""
    return (options.width << 3) * EXPANSION[options.depth]


def _stem_of(options: Options, inputs: tuple[int, ...]) -> Literal["small", "imagenet"]:
    if options.stem == "auto":
        return "imagenet" if min(inputs[:2]) >= 64 else "small"
    return options.stem


def _path(options: Options, filters: int, stride: int) -> list[_Convolution]:
    """The convolutions of a block, beside its shortcut."""
    if options.depth == 18:
        return [_Convolution(filters, 3, stride), _Convolution(filters, 3, 1)]
    wide = filters * EXPANSION[options.depth]
    return [_Convolution(filters, 1, 1), _Convolution(filters, 3, stride), _Convolution(wide, 1, 1)]


def _block(entry: Any, options: Options, filters: int, stride: int) -> Any:
    import keras

    path = _path(options, filters, stride)
    shortcut = hidden = entry
    if stride > 1 or entry.shape[-1] != path[-1].filters:
        shortcut = _convolved(entry, _Convolution(path[-1].filters, 1, stride), options)
    for convolution in path[:-1]:
        hidden = keras.layers.Activation(options.activation)(_convolved(hidden, convolution, options))
    hidden = _convolved(hidden, path[-1], options, gamma="zeros")
    return keras.layers.Activation(options.activation)(keras.layers.Add()([shortcut, hidden]))


def _convolved(entry: Any, convolution: _Convolution, options: Options, gamma: str = "ones") -> Any:
    import keras

    filters, kernel, stride = convolution
    hidden = keras.layers.Conv2D(
        filters, kernel, stride, "same", use_bias=not options.batch_norm, kernel_initializer="he_normal"
    )(entry)
    if not options.batch_norm:
        return hidden
    return keras.layers.BatchNormalization(momentum=options.momentum, gamma_initializer=gamma, synchronized=True)(
        hidden
    )
