"""Text into classes: embeddings of the tokens, an encoder of three kinds, one dense layer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.contract.problems import Problem
from workers.training.models import _transformer as transformer

title = "Text classifier"
summary = "Embeddings of tokens, then their mean, a convolution or a transformer. For text with classes."


class Options(_Options):
    """How tokens become one vector."""

    encoder: Literal["mean", "convolution", "transformer"] = Field(
        "convolution",
        title="Encoder",
        description="The mean of all tokens; the strongest answer of each filter; or self-attention, then the mean.",
    )
    width: int = Field(64, ge=2, le=16_384, title="Width", description="Values that each token becomes.")
    kernel: int = Field(
        5,
        ge=1,
        le=64,
        title="Kernel",
        description="Tokens under a filter; for the convolution.",
        json_schema_extra={"advanced": True},
    )
    heads: int = Field(
        4,
        ge=1,
        le=128,
        title="Heads",
        description="Attentions side by side, a divisor of the width; for the transformer.",
        validate_default=True,
        json_schema_extra={"advanced": True},
    )
    units: int = Field(64, ge=1, le=65_536, title="Units", description="Width of the dense layer.")
    dropout: float = Field(0.3, ge=0, lt=1, title="Dropout", description="Part that is dropped before the logits.")

    @field_validator("heads")
    @classmethod
    def _share_the_width(cls, heads: int, info: ValidationInfo) -> int:
        width = info.data.get("width")
        if width is not None and width % heads and info.data.get("encoder") == "transformer":
            raise ValueError(f"cannot share a width of {width}: choose a divisor of it")
        return heads


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """It needs text with classes."""
    if info.tokens is not None and info.task != "language_model":
        return []
    if info.tokens is None:
        message, remedy = f"needs text, and the data is {info.words}", "Choose imdb as dataset, or another model"
    else:
        message, remedy = "needs text with classes, and this is to be continued", "Choose transformer_lm"
    return [Problem("name", message, "text_classifier", remedy)]


def build_model(info: DatasetInfo, options: Options) -> Any:
    """A keras.Model from int32 [batch, length] to float32 [batch, outputs] logits."""
    import keras

    entry = keras.Input(info.shape, dtype="int32")
    if options.encoder == "transformer":
        hidden = transformer.embed(entry, vocabulary=_vocabulary(info), width=options.width)
        hidden = transformer.block(hidden, heads=options.heads, dropout=options.dropout, causal=False)
    else:
        hidden = keras.layers.Embedding(_vocabulary(info), options.width, name="tokens")(entry)
    if options.encoder == "convolution":
        hidden = keras.layers.Conv1D(options.width, options.kernel, padding="same", activation="relu")(hidden)
        hidden = keras.layers.GlobalMaxPooling1D()(hidden)
    else:
        hidden = keras.layers.GlobalAveragePooling1D()(hidden)
    hidden = keras.layers.Dense(options.units, activation="relu")(hidden)
    if options.dropout:
        hidden = keras.layers.Dropout(options.dropout)(hidden)
    logits = keras.layers.Dense(info.outputs, dtype="float32", name="logits")(hidden)
    return keras.Model(entry, logits, name="text_classifier")


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """Trainable weights."""
    width, places = options.width, info.features if options.encoder == "transformer" else 0
    encoder = transformer.embed_parameters(vocabulary=_vocabulary(info), length=places, width=width)
    if options.encoder == "transformer":
        encoder += transformer.block_parameters(width)
    if options.encoder == "convolution":
        encoder += (options.kernel * width + 1) * width
    return encoder + (width + 1) * options.units + (options.units + 1) * info.outputs


def kernels(info: DatasetInfo, options: Options) -> dict[str, tuple[int, ...]]:
    """Tables by their width and rows, attention by its heads, all other layers by their outputs and inputs."""
    width, units = options.width, options.units
    found: dict[str, tuple[int, ...]] = {"the embeddings of tokens": (width, _vocabulary(info))}
    if options.encoder == "transformer":
        found |= transformer.embed_kernels(vocabulary=_vocabulary(info), length=info.features, width=width)
        found |= transformer.block_kernels(width=width, heads=options.heads)
    if options.encoder == "convolution":
        found["the convolution"] = (width, width)
    return {**found, "model.options.units": (units, width), "the logits": (info.outputs, units)}


def _vocabulary(info: DatasetInfo) -> int:
    # Data that is no text was refused by `check`.
    return info.tokens or 0
