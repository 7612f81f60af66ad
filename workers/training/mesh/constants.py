"""What a model holds besides its variables: the mean that a Normalization subtracts, a table that is added.

TensorFlow hands a tensor that a step finds outside of itself to the step's devices, and a mesh takes none that was made
elsewhere. As arrays they become part of the step, and are on every device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def as_arrays(model: Any) -> Iterator[None]:
    """Inside, the tensors of layers, and those in a functional model's calls, are NumPy arrays of the same types."""
    import keras

    held = [(owner, name, vars(owner)[name]) for owner, name in _places(model)]
    for owner, name, value in held:
        # Past the tracker of Keras, for which this is none of a layer's state.
        object.__setattr__(owner, name, keras.tree.map_structure(_array_of, value))
    try:
        yield
    finally:
        for owner, name, value in held:
            object.__setattr__(owner, name, value)


def _places(model: Any) -> Iterator[tuple[Any, str]]:
    """Each object and attribute that is, or may hold, a tensor with a value."""
    for layer in model._flatten_layers():
        yield from ((layer, name) for name, value in vars(layer).items() if _array_of(value) is not value)
        for operation in getattr(layer, "operations", ()):
            yield from ((node.arguments, name) for node in operation._inbound_nodes for name in ("args", "kwargs"))


def _array_of(value: Any) -> Any:
    import tensorflow as tf

    # Those of a graph have no value yet.
    return value.numpy() if isinstance(value, tf.Tensor) and hasattr(value, "numpy") else value
