"""How what a layer takes and gives lies on the mesh: said for every layer with weights, and not left to DTensor.

DTensor passes wishes for layouts up and down the whole step, optimizer and all. Where a layer's input and the gradient
of its output both come split over the model dimension, as behind an embedding or between two dense layers, the
gradient of its kernel may be split on either axis: each answer changes the wishes that led to it. DTensor goes round
for 500 steps, freezes what does not move, and what it then cannot compile ("EmitAllScatter ... not more sharded")
depends on the optimizer, since that is where some of the wishes come from. With the ends of each layer given, the
gradient of a weight can only come as the weight lies, and nothing outside of a layer has a say in it.

Between layers everything is whole. What lies there may be any operation, and DTensor of TensorFlow 2.21 computes some
of them wrongly on parts, without a word: it concatenates the parts of each device, and not those of each tensor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from workers.training.mesh.layouts import WHOLE, Split, computes_in_parts

HEADS = 2
"""Axis of the heads in queries, keys, values, and what attention makes of them."""

Axes = tuple[int | None, ...]


class Ends(NamedTuple):
    """The axes that are split over the model dimension, None for none, in what a layer takes and in what it gives.

    Where there are two, the tensor is laid out by one after the other: the outer one for the neighbours of the layer,
    the inner one for the layer itself.
    """

    taken: Axes = (None,)
    given: Axes = (None,)


def ends_of(model: Any, splits: Mapping[int, Split]) -> list[tuple[Any, Ends]]:
    """The ends of each layer that has weights of its own; `splits` are those of the trained ones by their ids."""
    import keras

    found: dict[int, tuple[Any, Ends]] = {}
    parts = _parts_of(model, splits)
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.MultiHeadAttention) and computes_in_parts(layer):
            # Before the layers that it is made of; it needs no more of its operations than these two have between them.
            makers = (layer.query_dense, layer.key_dense, layer.value_dense)
            ends = [*((maker, Ends(given=(HEADS,))) for maker in makers), (layer.output_dense, Ends(taken=(HEADS,)))]
            found |= {id(part): (part, end if _in_parts(part, splits) else Ends()) for part, end in ends}
        elif layer._trainable_variables and id(layer) not in found:
            found[id(layer)] = layer, _of_layer(layer, splits, parts)
    return list(found.values())


class _Parts(NamedTuple):
    """Layers, by their ids, whose neighbours take what they give in parts, and give what they take."""

    givers: set[int]
    takers: set[int]


def _of_layer(layer: Any, splits: Mapping[int, Split], parts: _Parts) -> Ends:
    """Layers that do not compute on the parts of their weights need whole examples themselves."""
    import keras

    if _split_on_outputs(layer, splits):
        return Ends(given=(-1,) if id(layer) in parts.givers else (-1, None))
    # Rows of an embedding are taken by their numbers.
    if _in_parts(layer, splits) and isinstance(layer, keras.layers.Dense):
        return Ends(taken=(-1,) if id(layer) in parts.takers else (None, -1))
    return Ends()


def _split_on_outputs(layer: Any, splits: Mapping[int, Split]) -> bool:
    return _in_parts(layer, splits) and _split_of(layer, splits).axis == len(layer._trainable_variables[0].shape) - 1


def _in_parts(layer: Any, splits: Mapping[int, Split]) -> bool:
    split = _split_of(layer, splits)
    return split.in_parts and split.axis is not None


def _split_of(layer: Any, splits: Mapping[int, Split]) -> Split:
    """Of the layer's first weight; those that are not trained are whole."""
    own = layer._trainable_variables
    return splits.get(id(own[0]), WHOLE) if own else WHOLE


def _parts_of(model: Any, splits: Mapping[int, Split]) -> _Parts:
    """What the model's last layers give stays in parts: losses are computed on them, and of a large vocabulary they are
    large. So does what goes from a dense layer to one that is split on its inputs, with nothing but dropout between.
    """
    import keras

    outputs = keras.tree.flatten(getattr(model, "outputs", None) or [])
    parts = _Parts({id(one._keras_history.operation) for one in outputs if _only_last(one._keras_history)}, set())
    for layer in model._flatten_layers():
        taker = _taker_of(layer) if isinstance(layer, keras.layers.Dense) and _split_on_outputs(layer, splits) else None
        if taker is not None and _in_parts(taker, splits) and not _split_on_outputs(taker, splits):
            parts.givers.add(id(layer))
            parts.takers.add(id(taker))
    return parts


def _only_last(history: Any) -> bool:
    return len(history.operation._inbound_nodes) == 1 and not history.operation._outbound_nodes


def _taker_of(layer: Any) -> Any:
    """The dense layer that alone takes what `layer` gives, as it is or after dropout; None for anything else."""
    import keras

    while len(layer._inbound_nodes) == len(layer._outbound_nodes) == 1:
        layer = layer._outbound_nodes[0].operation
        if isinstance(layer, keras.layers.Dense) and len(layer._inbound_nodes) == 1:
            return layer
        if not isinstance(layer, keras.layers.Dropout):
            break
    return None


@contextlib.contextmanager
def laid_out(ends: list[tuple[Any, Ends]], lay: Callable[[Any, int | None], Any]) -> Iterator[None]:
    """Layers called inside take and give their tensors as `lay` returns them, given a tensor and the axis to split."""
    for layer, end in ends:
        # Past the tracker of Keras, for which this is none of the layer's state.
        object.__setattr__(layer, "call", _between(layer.call, end, lay))
    try:
        yield
    finally:
        for layer, _ in ends:
            object.__delattr__(layer, "call")


def _between(call: Callable[..., Any], ends: Ends, lay: Callable[[Any, int | None], Any]) -> Callable[..., Any]:
    import keras

    def each_laid(values: Any, axes: Axes) -> Any:
        for axis in axes:
            values = keras.tree.map_structure(lambda value, axis=axis: lay(value, axis), values)
        return values

    def laid(*arguments: Any, **named: Any) -> Any:
        return each_laid(call(*each_laid(arguments, ends.taken), **named), ends.given)

    return laid
