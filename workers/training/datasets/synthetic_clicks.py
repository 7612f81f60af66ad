"""Clicks on advertisements, made up: columns of ids, some of very many, and columns of plain numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator

from workers.contract.base import Options as _Options
from workers.contract.data import MOST_CATEGORIES, DatasetInfo
from workers.training.arrays import Arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

title = "Synthetic clicks"
summary = (
    "Whether somebody clicked, by columns of ids (users, pages, ...) and of numbers. Large embeddings: the case for "
    "parameter servers."
)

MAX_VALUES = 200_000_000
SEED = 20_262
TEST_PART = 0.1
NOISE = 0.3
"""Standard deviation of what decides a click and that no column knows; the columns' own part has 1."""


class Options(_Options):
    """How many ids each column has, and how many rows there are."""

    categories: tuple[Annotated[int, Field(ge=2, le=MOST_CATEGORIES)], ...] = Field(
        (100_000, 1_000, 50),
        title="Categories",
        description="Different ids of each column; a few are common and most are rare, as people are.",
        min_length=1,
        max_length=64,
    )
    numbers: int = Field(4, ge=0, le=1000, title="Numbers", description="Columns of plain numbers.")
    samples: int = Field(
        20_000,
        ge=10,
        le=10_000_000,
        title="Samples",
        description="Training rows; a tenth as many more are made for the test.",
        json_schema_extra={"unit": "samples"},
    )

    @field_validator("samples")
    @classmethod
    def _fits_memory(cls, samples: int, info: Any) -> int:
        columns = len(info.data.get("categories", ())) + info.data.get("numbers", 0)
        if samples * columns > MAX_VALUES:
            raise ValueError(f"would be {samples * columns:,} values; at most {MAX_VALUES // columns:,} rows fit")
        return samples


def describe(options: Options) -> DatasetInfo:
    """As the options say; class 1 is a click."""
    return DatasetInfo(
        shape=(len(options.categories) + options.numbers,),
        classes=2,
        categories=options.categories,
        samples=options.samples,
        test_samples=max(1, int(options.samples * TEST_PART)),
    )


def load(options: Options, home: Path) -> Arrays:
    """Features [samples, columns] float32, ids first; the same for the same options, everywhere."""
    import numpy as np

    random = np.random.default_rng(SEED)
    tastes = [random.normal(size=count).astype(np.float32) for count in options.categories]
    slopes = random.normal(size=options.numbers).astype(np.float32)
    training = _draw(random, tastes, slopes, options.samples)
    return Arrays(*training, *_draw(random, tastes, slopes, describe(options).test_samples))


def _draw(random: Any, tastes: list[NDArray[Any]], slopes: NDArray[Any], count: int) -> tuple[Any, Any]:
    """A row's score adds up what its columns are worth; above zero it is a click."""
    import numpy as np

    # An exponential of a uniform number: rank r comes as often as 1 / r.
    ids = [(len(taste) ** random.random(count)).astype(np.int64) - 1 for taste in tastes]
    numbers = random.normal(size=(count, len(slopes))).astype(np.float32)
    score = sum(taste[column] for taste, column in zip(tastes, ids, strict=True)) + numbers @ slopes
    spread = math.sqrt(len(tastes) + float(slopes @ slopes))
    clicked = score / spread + NOISE * random.normal(size=count) > 0
    features = np.concatenate([np.stack(ids, 1).astype(np.float32), numbers], 1)
    return features, clicked.astype(np.int32)
