"""Wide and deep (Cheng et al., 2016): what each id is worth by itself, beside a network on embeddings of all."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.contract.problems import Problem
from workers.training.models import _dense as dense

title = "Wide and deep"
summary = "A weight for each id beside a network on embeddings. Large tables: the case for parameter servers."


class Options(_Options):
    """How wide the embeddings are, and the network on them."""

    width: int = Field(16, ge=1, le=4096, title="Width", description="Values that each id becomes.")
    units: tuple[Annotated[int, Field(ge=1, le=65_536)], ...] = Field(
        (64, 32), title="Units", description="Width of each hidden layer, first to last.", min_length=1, max_length=50
    )
    dropout: float = Field(
        0.0, ge=0, lt=1, title="Dropout", description="Part that is dropped after each hidden layer."
    )


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """It needs columns of ids."""
    if info.categories:
        return []
    message = f"needs columns of ids, and the data is {info.words}"
    return [
        Problem(
            "name",
            message,
            "wide_and_deep",
            "Choose synthetic_clicks, or a table with `categories: codes`, or another model",
        )
    ]


def build_model(info: DatasetInfo, options: Options) -> Any:
    """A keras.Model from float32 [batch, columns], ids first, to float32 [batch, outputs] logits."""
    import keras

    # Half precision would round the ids.
    entry = keras.Input(info.shape, dtype="float32")
    wide, deep = [], []
    for column, count in enumerate(info.categories):
        ids = keras.ops.cast(entry[:, column], "int32")
        wide.append(keras.layers.Embedding(count, info.outputs, dtype="float32", name=f"wide_{column}")(ids))
        deep.append(keras.layers.Embedding(count, options.width, name=f"deep_{column}")(ids))
    if _numbers(info):
        numbers = entry[:, len(info.categories) :]
        wide.append(keras.layers.Dense(info.outputs, use_bias=False, dtype="float32", name="wide_numbers")(numbers))
        deep.append(numbers)
    hidden = keras.layers.Concatenate()(deep) if len(deep) > 1 else deep[0]
    for units in options.units:
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
        if options.dropout:
            hidden = keras.layers.Dropout(options.dropout)(hidden)
    logits = keras.layers.Dense(info.outputs, dtype="float32", name="logits")(hidden)
    return keras.Model(entry, keras.layers.Add(dtype="float32")([logits, *wide]), name="wide_and_deep")


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """Trainable weights."""
    wide = (sum(info.categories) + _numbers(info)) * info.outputs
    embeddings = sum(info.categories) * options.width
    return wide + embeddings + dense.parameters(_widths(info, options))


def kernels(info: DatasetInfo, options: Options) -> dict[str, tuple[int, ...]]:
    """Tables by their width and ids, dense layers by their outputs and inputs."""
    found: dict[str, tuple[int, ...]] = {}
    for column, count in enumerate(info.categories):
        found |= {f"wide_{column}": (info.outputs, count), f"deep_{column}": (options.width, count)}
    if _numbers(info):
        found["wide_numbers"] = (info.outputs, _numbers(info))
    return found | dense.kernels(_widths(info, options))


def _numbers(info: DatasetInfo) -> int:
    """Columns of plain numbers."""
    return info.features - len(info.categories)


def _widths(info: DatasetInfo, options: Options) -> tuple[int, ...]:
    """Of the deep side, from what enters its first dense layer to the logits."""
    return (len(info.categories) * options.width + _numbers(info), *options.units, info.outputs)
