"""What of a built Keras model a mesh of devices has to know before it may hold it.

Read off the layers by the names of Keras' classes, so that the throw-away process, which looks at uploads, and the
engine say the same, and nothing here imports Keras.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from workers.contract.base import Strict

Trait = Literal["loop", "dilated", "depthwise", "unknown", "untrained"]
REASONS: Mapping[Trait, str] = {
    "loop": "DTensor cannot compile its loop",
    "dilated": "DTensor cannot compile a dilated convolution",
    "depthwise": "DTensor has no layout for the gradient of a depthwise convolution",
    "unknown": "DTensor has no layout for what it computes",
    "untrained": "DTensor has no layout for what it computes in training",
}
"""As found with TensorFlow 2.21, where a loop ends the process without a word."""

OTHERS = "Use mirrored or multi_worker_mirrored"
REMEDIES: Mapping[Trait, str] = {"loop": "Make the layer with unroll=True, or use mirrored or multi_worker_mirrored"}
IN_TRAINING: frozenset[Trait] = frozenset({"depthwise", "untrained"})
DEPTHWISE = {"DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"}
UNKNOWN = {"Cumprod", "Diagonal", "Discretization", "Flip", "Hashing", "Roll", "Tril", "Triu"}
UNTRAINED = {
    *("AveragePooling3D", "Median", "Prod", "Quantile", "RandomFlip", "RandomGaussianBlur", "RandomPerspective"),
    *("RandomPosterization", "RandomRotation", "RandomSharpness", "RandomShear", "RandomTranslation", "RandomZoom"),
    *("Softsign", "Sparsemax", "SpectralNormalization"),
}
"""Of all layers, and of all operations that a functional model may be made of: some 190 were tried, these failed."""
MOST_KERNELS = 64


class Obstacle(Strict):
    """A layer, or an operation between layers, that some strategy cannot compute; `kind` is the name of its class."""

    trait: Trait
    layer: str = Field(max_length=200)
    kind: str = Field(max_length=200)

    def __str__(self) -> str:
        return f"the layer {self.layer} ({self.kind}): {REASONS[self.trait]}"


def hindrance(found: Iterable[Obstacle], *, training: bool) -> tuple[str, str] | None:
    """What a mesh cannot do with the first layer that hinders it, and the remedy; None where nothing does.

    Not all layers hinder it where no gradients are needed.
    """
    for obstacle in found:
        if training or obstacle.trait not in IN_TRAINING:
            return f"cannot {'train' if training else 'compute'} {obstacle}", REMEDIES.get(obstacle.trait, OTHERS)
    return None


def obstacles(model: Any) -> tuple[Obstacle, ...]:
    """The first of each trait, among all layers, those that they are made of, and the operations between them."""
    found: dict[Trait, Obstacle] = {}
    for layer in model._flatten_layers():
        for part in (layer, *getattr(layer, "operations", ())):
            for trait in _traits(part):
                name = getattr(part, "path", part.name)
                found.setdefault(trait, Obstacle(trait=trait, layer=name[-200:], kind=type(part).__name__[:200]))
    return tuple(found.values())


def kernels(model: Any) -> dict[str, tuple[int, ...]]:
    """The first of at most MOST_KERNELS trained kernels of different sizes: one of these must divide to split it."""
    found: dict[tuple[int, ...], str] = {}
    left = set(map(id, model.trainable_variables))
    for layer in model._flatten_layers():
        for variable, axes in split_axes(layer):
            if id(variable) in left:
                sizes = tuple(variable.shape[axis] for axis in axes)
                found.setdefault(sizes, variable.path.removesuffix("/kernel")[-200:])
            # Attention comes before the layers that it is made of, and has spoken for their weights.
            left.discard(id(variable))
    return {path: sizes for sizes, path in [*found.items()][:MOST_KERNELS]}


def split_axes(layer: Any) -> list[tuple[Any, tuple[int, ...]]]:
    """The layer's kernels, each with the axes of which one may be split, best first; attention's are its heads, which
    its biases have too.
    """
    if "MultiHeadAttention" in _classes(layer):
        parts = (layer.query_dense, layer.key_dense, layer.value_dense)
        biases = [(part.bias, (0,)) for part in parts if part.bias is not None]
        return [*((part.kernel, (1,)) for part in parts), *biases, (layer.output_dense.kernel, (0,))]
    ranks = [(variable, len(variable.shape)) for variable in layer._trainable_variables]
    return [(variable, (rank - 1, rank - 2)) for variable, rank in ranks if rank > 1]


def not_divided(sizes: Iterable[int], columns: int) -> str:
    """In words, that none of `sizes` is a multiple of `columns`."""
    different = list(dict.fromkeys(sizes))
    words = f"neither {' nor '.join(map(str, different))} is" if len(different) > 1 else f"{different[0]} is not"
    return f"{words} a multiple of {columns}"


def _traits(layer: Any) -> Iterator[Trait]:
    names = _classes(layer)
    if names & UNKNOWN:
        yield "unknown"
    if names & UNTRAINED:
        yield "untrained"
    if "RNN" in names and not layer.unroll:
        yield "loop"
    if any(rate > 1 for rate in _dilations(layer)):
        yield "dilated"
    if names & DEPTHWISE:
        yield "depthwise"


def _classes(layer: Any) -> set[str]:
    return {kind.__name__ for kind in type(layer).__mro__ if kind.__module__.startswith("keras.")}


def _dilations(layer: Any) -> tuple[int, ...]:
    """Of Keras' convolutions; what a layer of somebody's own calls so may be anything."""
    if not any("Conv" in name for name in _classes(layer)):
        return ()
    rate = getattr(layer, "dilation_rate", 1)
    return (rate,) if isinstance(rate, int) else tuple(rate)
