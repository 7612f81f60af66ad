"""A small GPT: a causal transformer that says at each place which token comes next."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.contract.problems import Problem
from workers.training.models import _transformer as transformer

title = "Transformer language model"
summary = "A small GPT: causal self-attention over the data's whole length. For text that is to be continued."


class Options(_Options):
    """How deep and how wide; the context is as long as the data's examples."""

    layers: int = Field(2, ge=1, le=96, title="Layers", description="Blocks of attention and a feed-forward part.")
    width: int = Field(
        64, ge=2, le=16_384, title="Width", description="Values that each token becomes; a multiple of the heads."
    )
    heads: int = Field(
        4,
        ge=1,
        le=128,
        title="Heads",
        description="Attentions side by side, each on its part of the width.",
        validate_default=True,
    )
    dropout: float = Field(0.1, ge=0, lt=1, title="Dropout", description="Part that is dropped after each part.")

    @field_validator("heads")
    @classmethod
    def _share_the_width(cls, heads: int, info: ValidationInfo) -> int:
        width = info.data.get("width")
        if width is not None and width % heads:
            raise ValueError(f"cannot share a width of {width}: choose a divisor of it")
        return heads


def check(options: Options, info: DatasetInfo) -> list[Problem]:
    """It needs text to continue."""
    if info.task == "language_model":
        return []
    message = f"continues text, and the data is {info.words} for {info.task.replace('_', ' ')}"
    return [Problem("name", message, "transformer_lm", "Choose tiny_text, synthetic_tokens or a text file as dataset")]


def build_model(info: DatasetInfo, options: Options) -> Any:
    """A keras.Model from int32 [batch, length] to float32 [batch, length, tokens] logits."""
    import keras

    entry = keras.Input(info.shape, dtype="int32")
    hidden = transformer.embed(entry, vocabulary=info.outputs, width=options.width)
    for _ in range(options.layers):
        hidden = transformer.block(hidden, heads=options.heads, dropout=options.dropout, causal=True)
    hidden = keras.layers.LayerNormalization()(hidden)
    logits = keras.layers.Dense(info.outputs, dtype="float32", name="logits")(hidden)
    return keras.Model(entry, logits, name="transformer_lm")


def count_parameters(info: DatasetInfo, options: Options) -> int:
    """Trainable weights."""
    width = options.width
    embeddings = transformer.embed_parameters(vocabulary=info.outputs, length=info.features, width=width)
    blocks = options.layers * transformer.block_parameters(width)
    return embeddings + blocks + 2 * width + (width + 1) * info.outputs


def kernels(info: DatasetInfo, options: Options) -> dict[str, tuple[int, ...]]:
    """Tables by their width and rows, attention by its heads, dense layers by their outputs and inputs."""
    tables = transformer.embed_kernels(vocabulary=info.outputs, length=info.features, width=options.width)
    blocks = transformer.block_kernels(width=options.width, heads=options.heads)
    return {**tables, **blocks, "the logits": (info.outputs, options.width)}
