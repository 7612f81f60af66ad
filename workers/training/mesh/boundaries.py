"""How what a layer takes and gives lies on the mesh: said for every layer with weights, and not left to DTensor.

DTensor passes wishes for layouts up and down the whole step, optimizer and all. Where a layer's input and the gradient
of its output both come split over the model dimension, as behind an embedding or between two dense layers, the
gradient of its kernel may be split on either axis: each answer changes the wishes that led to it. DTensor goes round
for 500 steps, freezes what does not move, and what it then cannot compile ("EmitAllScatter ... not more sharded")
depends on the optimizer, since that is where some of the wishes come from. With the ends of each layer given, the
gradient of a weight can only come as the weight lies, and nothing outside of a layer has a say in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from workers.training.mesh.layouts import WHOLE, Split

HEADS = 2
"""Axis of the heads in queries, keys, values, and what attention makes of them."""


class Ends(NamedTuple):
    """The axis that is split over the model dimension in what a layer takes and in what it gives; None for none."""

    taken: int | None = None
    given: int | None = None


def ends_of(model: Any, splits: Mapping[int, Split]) -> list[tuple[Any, Ends]]:
    """The ends of each layer that has weights of its own; `splits` are those of the trained ones by their ids."""
    import keras

    found: dict[int, tuple[Any, Ends]] = {}
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.MultiHeadAttention):
            # Before the layers that it is made of.
            makers = (layer.query_dense, layer.key_dense, layer.value_dense)
            found |= {id(maker): (maker, _if_split(maker, splits, Ends(given=HEADS))) for maker in makers}
            out = layer.output_dense
            found[id(out)] = out, _if_split(out, splits, Ends(taken=HEADS))
        elif layer._trainable_variables and id(layer) not in found:
            found[id(layer)] = layer, _of_layer(layer, splits)
    return list(found.values())


def _of_layer(layer: Any, splits: Mapping[int, Split]) -> Ends:
    """Layers that do not compute on the parts of their weights take and give whole examples."""
    import keras

    if not isinstance(layer, keras.layers.Dense | keras.layers.Embedding):
        return Ends()
    weight = layer._trainable_variables[0]
    split = splits.get(id(weight), WHOLE)
    if split.axis == len(weight.shape) - 1:
        return Ends(given=-1)
    # Rows of an embedding are taken by their numbers.
    return Ends() if isinstance(layer, keras.layers.Embedding) else _if_split(layer, splits, Ends(taken=-1))


def _if_split(layer: Any, splits: Mapping[int, Split], ends: Ends) -> Ends:
    """Weights that are not trained are whole on every device."""
    return ends if splits.get(id(layer.kernel), WHOLE).axis is not None else Ends()


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

    def laid(*arguments: Any, **named: Any) -> Any:
        taken = keras.tree.map_structure(lambda value: lay(value, ends.taken), arguments)
        return keras.tree.map_structure(lambda value: lay(value, ends.given), call(*taken, **named))

    return laid
