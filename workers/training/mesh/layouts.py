"""Which axis of each weight a mesh splits over its model dimension, by the Keras layer that owns the weight.

    Dense                  kernel on its outputs and the bias with it; on its inputs where the outputs do not divide
    MultiHeadAttention     query, key and value kernels on the heads, the output kernel too, their biases with them
    Embedding              on the embedding dimension; on the vocabulary where that does not divide
    all other kernels      convolutions on their filters, everything else on its last axis; else on the one before it

These three compute on their parts (tensor parallelism: each device has its columns, heads or dimensions), unless they
are of a class of somebody's own, which may do anything with them. All other layers are split in memory only: their
weights are gathered right before they are used, as ZeRO-3 does, because DTensor has no rule for a split convolution.
Vectors of layers without a split kernel (normalizations) are whole everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from workers.contract.obstacles import hindrance, not_divided, obstacles, split_axes
from workers.training.devices import DeviceError


class MeshError(DeviceError):
    """A weight or a layer that the mesh cannot hold; the message is one sentence that ends with what to do."""


class Split(NamedTuple):
    """The axis of a weight that is split, None for none; whether the layer computes on the parts as they are."""

    axis: int | None = None
    in_parts: bool = False


WHOLE = Split()


def splits_of(model: Any, parts: int) -> list[Split]:
    """How each of the model's trainable weights, in their order, is split into `parts`. Raises MeshError.

    A kernel none of whose axes is a multiple of `parts` is refused: it is what a mesh is asked for.
    """
    if parts == 1:
        return [WHOLE] * len(model.trainable_variables)
    found: dict[int, Split] = {}
    for layer in model._flatten_layers():
        # Attention comes before the layers that it is made of, and has spoken for their weights.
        own = [variable for variable in layer._trainable_variables if id(variable) not in found]
        found |= {id(variable): split for variable, split in _of_layer(layer, own, parts)}
    return [found.get(id(variable), WHOLE) for variable in model.trainable_variables]


def check_layers(model: Any, *, training: bool) -> None:
    """Raises MeshError for a layer whose operations DTensor cannot compile, or not train."""
    found = hindrance(obstacles(model), training=training)
    if found is not None:
        raise MeshError(f"A mesh {found[0]}. {found[1]}.")


def first_that_divides(sizes: Sequence[int], axes: Sequence[int], parts: int) -> int | None:
    """The first of `axes` whose size is a multiple of `parts`."""
    return next((axis for axis in axes if sizes[axis] % parts == 0), None)


def _of_layer(layer: Any, own: list[Any], parts: int) -> list[tuple[Any, Split]]:
    import keras

    in_parts = computes_in_parts(layer)
    if in_parts and isinstance(layer, keras.layers.Dense) and layer.kernel.shape[-1] % parts == 0:
        return [(variable, Split(len(variable.shape) - 1, True)) for variable in own]
    # Heads stay together: each device computes the attention of its own ones, and the output sums over them.
    attention, wanted = isinstance(layer, keras.layers.MultiHeadAttention), set(map(id, own))
    return [
        (each, Split(_axis(each, axes, parts), in_parts))
        for each, axes in split_axes(layer)
        if attention or id(each) in wanted
    ]


def computes_in_parts(layer: Any) -> bool:
    """Whether each device computes with its part of the layer's weights alone."""
    import keras

    kinds = keras.layers.Dense | keras.layers.MultiHeadAttention | keras.layers.Embedding
    return isinstance(layer, kinds) and type(layer).__module__.startswith("keras.")


def _axis(variable: Any, axes: Sequence[int], parts: int) -> int:
    axis = first_that_divides(variable.shape, axes, parts)
    if axis is None:
        sizes = [variable.shape[each] for each in axes]
        raise MeshError(
            f"The mesh cannot split {variable.path} of {tuple(variable.shape)}: {not_divided(sizes, parts)}; "
            "choose another mesh.model, or change the model's sizes."
        )
    return axis
