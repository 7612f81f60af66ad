"""What layers hold besides their variables, such as the mean that a Normalization subtracts.

TensorFlow hands a tensor that a step finds outside of itself to the step's devices, and a mesh takes none that was made
elsewhere. As arrays they become part of the step, and are on every device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def as_arrays(model: Any) -> Iterator[None]:
    """Inside, the layers' own tensors are NumPy arrays of the same shapes and types."""
    import tensorflow as tf

    held = [
        (layer, name, value)
        for layer in model._flatten_layers()
        for name, value in vars(layer).items()
        # Those of a graph have no value yet.
        if isinstance(value, tf.Tensor) and hasattr(value, "numpy")
    ]
    for layer, name, value in held:
        # Past the tracker of Keras, for which this is none of the layer's state.
        object.__setattr__(layer, name, value.numpy())
    try:
        yield
    finally:
        for layer, name, value in held:
            object.__setattr__(layer, name, value)
