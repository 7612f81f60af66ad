"""What a dataset says of itself without being loaded, so that a form knows it before any training host does."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from workers.contract.base import Strict
from workers.contract.problems import Problem

Task = Literal["classification", "regression", "language_model", "reconstruction", "adversarial"]
"""What is minimised. A dataset says what its targets are for; a model may train something else (the last two)."""

MOST_CATEGORIES = 2**24
"""Of one column: its ids stand among float32 features, which are exact up to here."""


class DatasetInfo(Strict):
    """`shape` is one example's, without the batch; `samples` counts training examples before the validation split.

    `classes` is None for regression, whose targets have `targets` columns, and for a language model, which predicts the
    next of `tokens`. With `tokens` features are int32 ids [length] below it; a language model's targets are too. With
    `categories` the leading columns are ids, each below its number, and the rest are plain numbers.
    """

    task: Literal["classification", "regression", "language_model"] = "classification"
    shape: tuple[int, ...]
    classes: int | None = Field(None, ge=2)
    targets: int = Field(1, ge=1)
    tokens: int | None = Field(None, ge=2)
    categories: tuple[Annotated[int, Field(ge=1, le=MOST_CATEGORIES)], ...] = ()
    samples: int = Field(ge=1)
    test_samples: int = Field(0, ge=0)
    bytes_per_value: int = 4
    files: int | None = Field(None, ge=1, description="How many files it is streamed from; None when held in memory.")

    @model_validator(mode="after")
    def _features_fit_the_task(self) -> DatasetInfo:
        if self.task == "language_model" and (self.tokens is None or self.classes is not None):
            raise ValueError("a language model predicts tokens: give `tokens` and no classes")
        if (self.tokens is not None or self.categories) and len(self.shape) != 1:
            raise ValueError("ids come in rows: give a shape of one dimension")
        if len(self.categories) > math.prod(self.shape):
            raise ValueError("there are more categories than columns")
        return self

    @property
    def outputs(self) -> int:
        """Width of the model's last layer."""
        if self.task == "language_model" and self.tokens is not None:
            return self.tokens
        return self.classes if self.classes is not None else self.targets

    @property
    def features(self) -> int:
        """Values in one example."""
        return math.prod(self.shape)

    @property
    def words(self) -> str:
        """What one example is, within a sentence."""
        size = "x".join(map(str, self.shape))
        if self.tokens is not None:
            return f"text of {size} tokens"
        if self.categories:
            return f"{len(self.categories)} columns of ids and {self.features - len(self.categories)} of numbers"
        return size

    @property
    def form(self) -> Literal["images", "tables", "text"]:
        """What one example is, in a word."""
        if self.tokens is not None:
            return "text"
        return "images" if len(self.shape) > 1 else "tables"

    def training_samples(self, validation_split: float) -> int:
        """Examples left for training; the engine splits with this same rule."""
        return self.samples - self.validation_samples(validation_split)

    def validation_samples(self, validation_split: float) -> int:
        """Examples held out, rounded down, but at least one when anything is asked for."""
        if validation_split <= 0:
            return 0
        return max(1, int(self.samples * validation_split))


def ids_refused(info: DatasetInfo, model: str) -> list[Problem]:
    """Why a model that computes with its inputs cannot take ids, whose size means nothing; for a model's `check`."""
    if info.tokens is None and not info.categories:
        return []
    fitting = "wide_and_deep" if info.categories else _for_text(info)
    return [Problem("name", f"computes with plain numbers, and the data is {info.words}", model, f"Choose {fitting}")]


def _for_text(info: DatasetInfo) -> str:
    return "transformer_lm" if info.task == "language_model" else "text_classifier"
