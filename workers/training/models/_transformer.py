"""What the models on tokens share: embeddings of tokens and places, and the transformer's layer (pre-norm)."""

from __future__ import annotations

from typing import Any

EXPANSION = 4
"""Width of the hidden layer in each feed-forward part, as a multiple of the model's."""


def embed(tokens: Any, *, vocabulary: int, width: int) -> Any:
    """Token and place embeddings summed: int32 [batch, length] to float [batch, length, width]."""
    import keras

    # Made of the input alone, and of Keras' own operations, so that the saved model loads without this module.
    places = keras.ops.cumsum(keras.ops.ones_like(tokens), axis=1) - 1
    named = keras.layers.Embedding(vocabulary, width, name="tokens")(tokens)
    return named + keras.layers.Embedding(tokens.shape[1], width, name="places")(places)


def block(hidden: Any, *, heads: int, dropout: float, causal: bool) -> Any:
    """Attention over all places (the earlier ones if `causal`), then a feed-forward part, each added to its input."""
    import keras

    width = hidden.shape[-1]
    attention = keras.layers.MultiHeadAttention(heads, width // heads)
    normal = keras.layers.LayerNormalization()(hidden)
    hidden = hidden + _dropped(attention(normal, normal, use_causal_mask=causal), dropout)
    normal = keras.layers.LayerNormalization()(hidden)
    wide = keras.layers.Dense(EXPANSION * width, activation="gelu")(normal)
    return hidden + _dropped(keras.layers.Dense(width)(wide), dropout)


def embed_parameters(*, vocabulary: int, length: int, width: int) -> int:
    """Weights that `embed` makes."""
    return (vocabulary + length) * width


def block_parameters(width: int) -> int:
    """Weights of one `block`: four projections, two normalizations, two dense layers."""
    return 4 * (width + 1) * width + 4 * width + (2 * EXPANSION * width + EXPANSION + 1) * width


def embed_kernels(*, vocabulary: int, length: int, width: int) -> dict[str, tuple[int, ...]]:
    """Each table of `embed` by its width and its rows."""
    return {"the embeddings of tokens": (width, vocabulary), "the embeddings of places": (width, length)}


def block_kernels(*, width: int, heads: int) -> dict[str, tuple[int, ...]]:
    """The attention of a `block` by its heads, the dense layers by their outputs and inputs."""
    wide = EXPANSION * width
    return {"model.options.heads": (heads,), "the feed-forward part": (wide, width), "its way back": (width, wide)}


def _dropped(values: Any, rate: float) -> Any:
    import keras

    return keras.layers.Dropout(rate)(values) if rate else values
