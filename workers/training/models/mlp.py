"""A multilayer perceptron: dense layers with dropout after each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo, ids_refused
from workers.contract.problems import Problem
from workers.training.models import _dense as dense

title = "Multilayer perceptron"
summary = "Dense layers with dropout after each, then logits."


class Options(_Options):
    """Width and dropout of each hidden layer."""

    units: tuple[Annotated[int, Field(ge=1, le=65_536)], ...] = Field(
        (256, 128), title="Units", description="Width of each hidden layer, first to last.", min_length=1, max_length=50
    )
    dropout: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = Field(
        (0.4, 0.3),
        title="Dropout",
        description="Part that is dropped after each hidden layer: one value for each of them, or one for all.",
        max_length=50,
    )
    activation: Literal["relu", "gelu", "tanh", "silu"] = Field(
        "relu", title="Activation", description="After each hidden layer.", json_schema_extra={"advanced": True}
    )

    @model_validator(mode="before")
    @classmethod
    def _usual_dropout(cls, data: Any) -> Any:
        """Who names the units alone has not asked for as many layers as the default has."""
        if not isinstance(data, Mapping) or "dropout" in data or not isinstance(data.get("units"), list | tuple):
            return data
        usual = cls.model_fields["dropout"].default
        return {**data, "dropout": tuple(usual[min(layer, len(usual) - 1)] for layer in range(len(data["units"])))}

    @field_validator("dropout", mode="before")
    @classmethod
    def _one_for_all(cls, dropout: Any) -> Any:
        return (dropout,) if isinstance(dropout, int | float) else dropout

    @field_validator("dropout")
    @classmethod
    def _one_for_each_layer(cls, dropout: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        layers = len(info.data.get("units", dropout))
        if len(dropout) < 2:
            return (dropout or (0.0,)) * layers
        if len(dropout) != layers:
            raise ValueError(f"has {len(dropout)} values and units {layers}: give one for each layer, or one for all")
        return dropout


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """It needs plain numbers."""
    return ids_refused(info, "mlp")


def build_model(info: DatasetInfo, options: Options) -> Any:
    """A keras.Model from [batch, *shape] to float32 [batch, outputs] logits."""
    import keras

    entry = keras.Input(info.shape)
    hidden = keras.layers.Flatten()(entry)
    for units, rate in zip(options.units, options.dropout, strict=True):
        hidden = keras.layers.Dense(units, activation=options.activation)(hidden)
        if rate:
            hidden = keras.layers.Dropout(rate)(hidden)
    return keras.Model(entry, keras.layers.Dense(info.outputs, dtype="float32", name="logits")(hidden), name="mlp")


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """Trainable weights."""
    return dense.parameters((info.features, *options.units, info.outputs))


def kernels(info: DatasetInfo, options: Options) -> dict[str, tuple[int, ...]]:
    """Each layer by its outputs and its inputs."""
    return dense.kernels((info.features, *options.units, info.outputs))
