"""Token sequences from a random Markov chain: any size, deterministic, and the best possible perplexity is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

title = "Synthetic tokens"
summary = (
    "Language model: each token is followed by one of a few others, all as likely. No model can get below a perplexity "
    "of `successors`; a good one gets near."
)

MAX_VALUES = 200_000_000
SEED = 20_261
TEST_PART = 0.1


class Options(_Options):
    """How many tokens there are, how predictable, and how much of them."""

    vocabulary: int = Field(64, ge=2, le=100_000, title="Vocabulary", description="Different tokens.")
    successors: int = Field(
        4, ge=1, le=64, title="Successors", description="Tokens that may follow each token: the best perplexity."
    )
    length: int = Field(
        32,
        ge=2,
        le=8192,
        title="Length",
        description="Tokens of one example: the model's context.",
        json_schema_extra={"unit": "tokens"},
    )
    samples: int = Field(
        5_000,
        ge=10,
        le=10_000_000,
        title="Samples",
        description="Training examples; a tenth as many more are made for the test.",
        json_schema_extra={"unit": "samples"},
    )

    @field_validator("samples")
    @classmethod
    def _fits_memory(cls, samples: int, info: Any) -> int:
        length = info.data.get("length", 1)
        if samples * length > MAX_VALUES:
            raise ValueError(f"would be {samples * length:,} tokens; at most {MAX_VALUES // length:,} fit")
        return samples

    @field_validator("successors")
    @classmethod
    def _are_there(cls, successors: int, info: Any) -> int:
        vocabulary = info.data.get("vocabulary", successors)
        if successors > vocabulary:
            raise ValueError(f"must be at most the vocabulary, {vocabulary}")
        return successors


def describe(options: Options) -> DatasetInfo:
    """As the options say."""
    return DatasetInfo(
        task="language_model",
        shape=(options.length,),
        tokens=options.vocabulary,
        samples=options.samples,
        test_samples=max(1, int(options.samples * TEST_PART)),
    )


def load(options: Options, home: Path) -> Arrays:
    """Features and targets int32 [samples, length], the targets one token on; the same everywhere."""
    import numpy as np

    random = np.random.default_rng(SEED)
    # The same distances from a place of each token's own: no row names a token twice.
    places, distances = random.permutation(options.vocabulary), random.permutation(options.vocabulary)
    followers = ((places[:, None] + distances[: options.successors]) % options.vocabulary).astype(np.int32)
    training = _walk(random, followers, options.samples, options.length)
    test = _walk(random, followers, describe(options).test_samples, options.length)
    return Arrays(training[:, :-1], training[:, 1:], test[:, :-1], test[:, 1:])


def _walk(random: Any, followers: NDArray[Any], samples: int, length: int) -> NDArray[Any]:
    """Int32 [samples, length + 1]."""
    import numpy as np

    vocabulary, successors = followers.shape
    found = np.empty((samples, length + 1), np.int32)
    found[:, 0] = random.integers(0, vocabulary, samples)
    for place in range(length):
        found[:, place + 1] = followers[found[:, place], random.integers(0, successors, samples)]
    return found
