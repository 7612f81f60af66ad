"""One dense layer on the flattened input: the baseline that everything else must beat."""

from __future__ import annotations

from typing import Any

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo, ids_refused
from workers.contract.problems import Problem

title = "Linear"
summary = "One dense layer: multinomial logistic regression, or linear regression."


class Options(_Options):
    """Nothing to choose."""


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """It needs plain numbers."""
    return ids_refused(info, "linear")


def build_model(info: DatasetInfo, options: Options) -> Any:
    """A keras.Model from [batch, *shape] to float32 [batch, outputs] logits."""
    import keras

    entry = keras.Input(info.shape)
    flat = keras.layers.Flatten()(entry)
    return keras.Model(entry, keras.layers.Dense(info.outputs, dtype="float32", name="logits")(flat), name="linear")


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """Trainable weights."""
    return (info.features + 1) * info.outputs


def kernels(info: DatasetInfo, options: Options) -> dict[str, tuple[int, ...]]:
    """The one kernel, by outputs and by inputs."""
    return {"the logits": (info.outputs, info.features)}
