"""One dense layer on the flattened input: the baseline that everything else must beat."""

from __future__ import annotations

import math
from typing import Any

from workers.contract.base import Options as _Options

title = "Linear"
summary = "One dense layer: multinomial logistic regression, or linear regression."


class Options(_Options):
    """Nothing to choose."""


def build_model(inputs: tuple[int, ...], outputs: int, options: Options) -> Any:
    """A keras.Model from [batch, *inputs] to float32 [batch, outputs] logits."""
    import keras

    entry = keras.Input(inputs)
    flat = keras.layers.Flatten()(entry)
    return keras.Model(entry, keras.layers.Dense(outputs, dtype="float32", name="logits")(flat), name="linear")


def count_parameters(inputs: tuple[int, ...], outputs: int, options: Options) -> int:
    """Trainable weights."""
    return (math.prod(inputs) + 1) * outputs
