"""Networks of keras.applications, untrained and of any input size, with a head for the data's classes."""

from __future__ import annotations

import math
from typing import Any

from workers.contract.data import DatasetInfo, ids_refused
from workers.contract.problems import Problem

SMALLEST = 32
"""Pixels of the shorter side that these networks need: they halve a picture five times."""


def fits(info: DatasetInfo, model: str) -> list[Problem]:
    """They need pictures."""
    if len(info.shape) == 3:
        return []
    message = f"needs pictures (height, width, channels), and the data is {info.words}"
    problem = Problem("name", message, model, "Choose mlp or linear, or a dataset of pictures")
    return ids_refused(info, model) or [problem]


def enlarged(pictures: Any) -> Any:
    """Pictures smaller than SMALLEST, each pixel repeated the smallest whole number of times that suffices."""
    import keras

    times = math.ceil(SMALLEST / min(pictures.shape[1:3]))
    return keras.layers.UpSampling2D(times)(pictures) if times > 1 else pictures


def headed(entry: Any, features: Any, info: DatasetInfo, dropout: float, name: str) -> Any:
    """A keras.Model with logits on `features` [batch, width]."""
    import keras

    hidden = keras.layers.Dropout(dropout)(features) if dropout else features
    return keras.Model(entry, keras.layers.Dense(info.outputs, dtype="float32", name="logits")(hidden), name=name)
