"""Which axis of each weight a mesh splits over its model dimension, by the Keras layer that owns the weight.

    Dense                  kernel on its outputs and the bias with it; on its inputs where the outputs do not divide
    MultiHeadAttention     query, key and value kernels on the heads, the output kernel too, their biases with them
    Embedding              on the embedding dimension; on the vocabulary where that does not divide
    all other kernels      convolutions on their filters, everything else on its last axis; else on the one before it

These three compute on their parts (tensor parallelism: each device has its columns, heads or dimensions). All other
layers are split in memory only: their weights are gathered right before they are used, as ZeRO-3 does, because DTensor
has no rule for a split convolution. Vectors of layers without a split kernel (normalizations) are whole everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from workers.training.devices import DeviceError
from workers.training.strategies.model_parallel import DEPTHWISE


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


def check_layers(model: Any) -> None:
    """Raises MeshError for a layer whose operations DTensor cannot compile: loops end the process without a word."""
    import keras

    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.RNN) and not layer.unroll:
            raise MeshError(
                f"A mesh cannot compute the loop of {layer.path} ({type(layer).__name__}); "
                "make the layer with unroll=True, or use mirrored or multi_worker_mirrored."
            )
        if any(rate > 1 for rate in _dilations(layer)):
            raise MeshError(
                f"A mesh cannot compute the dilated convolution of {layer.path} ({type(layer).__name__}); "
                "use mirrored or multi_worker_mirrored."
            )


def check_gradients(model: Any) -> None:
    """Raises MeshError for a layer that DTensor can compute but not train."""
    for layer in model._flatten_layers():
        if any(kind.__name__ in DEPTHWISE for kind in type(layer).__mro__):
            raise MeshError(
                f"A mesh cannot train {layer.path} ({type(layer).__name__}): DTensor has no layout for the gradient of "
                "a depthwise convolution; use mirrored or multi_worker_mirrored."
            )


def _dilations(layer: Any) -> tuple[int, ...]:
    rate = getattr(layer, "dilation_rate", 1)
    return (rate,) if isinstance(rate, int) else tuple(rate)


def first_that_divides(sizes: Sequence[int], axes: Sequence[int], parts: int) -> int | None:
    """The first of `axes` whose size is a multiple of `parts`."""
    return next((axis for axis in axes if sizes[axis] % parts == 0), None)


def _of_layer(layer: Any, own: list[Any], parts: int) -> list[tuple[Any, Split]]:
    import keras

    if isinstance(layer, keras.layers.MultiHeadAttention):
        return _attention(layer, parts)
    if isinstance(layer, keras.layers.Dense) and layer.kernel.shape[-1] % parts == 0:
        return [(variable, Split(len(variable.shape) - 1, True)) for variable in own]
    in_parts = isinstance(layer, keras.layers.Dense | keras.layers.Embedding)
    ranks = [(variable, len(variable.shape)) for variable in own]
    return [(each, Split(_axis(each, (rank - 1, rank - 2), parts), in_parts)) for each, rank in ranks if rank > 1]


def _attention(layer: Any, parts: int) -> list[tuple[Any, Split]]:
    """Heads stay together: each device computes the attention of its own ones, and the output sums over them."""
    split: list[tuple[Any, Split]] = []
    for projection in (layer.query_dense, layer.key_dense, layer.value_dense):
        heads = Split(_axis(projection.kernel, (1,), parts), True)
        split.append((projection.kernel, heads))
        if projection.bias is not None:
            split.append((projection.bias, Split(0, True)))
    split.append((layer.output_dense.kernel, Split(_axis(layer.output_dense.kernel, (0,), parts), True)))
    return split


def _axis(variable: Any, axes: Sequence[int], parts: int) -> int:
    axis = first_that_divides(variable.shape, axes, parts)
    if axis is None:
        sizes = " nor ".join(str(variable.shape[each]) for each in axes)
        words = f"neither {sizes} is" if len(axes) > 1 else f"{sizes} is not"
        raise MeshError(
            f"The mesh cannot split {variable.path} of {tuple(variable.shape)}: {words} a multiple of {parts}; "
            "choose another mesh.model, or change the model's sizes."
        )
    return axis
