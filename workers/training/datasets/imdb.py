"""IMDB film reviews as word ids, through Keras and its cache."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays, DataError
from workers.training.datasets import _pickled as pickled
from workers.training.datasets._kept import Kept

if TYPE_CHECKING:
    from numpy.typing import NDArray

title = "IMDB reviews"
summary = "50,000 film reviews as word ids, kind or unkind (Maas et al., 2011). Downloaded once, 17 MB."

KEPT = Kept("IMDB", "imdb", "https://storage.googleapis.com/tensorflow/tf-keras-datasets/", "", ("imdb.npz",))
PADDING, START, UNKNOWN, FIRST_WORD = 0, 1, 2, 3
"""Ids as Keras has them: those that mean something themselves, then a word of rank r (from 1) has r + FIRST_WORD."""


class Options(_Options):
    """How many words are told apart, and how much of a review is read."""

    vocabulary: int = Field(
        10_000,
        ge=10,
        le=88_588,
        title="Vocabulary",
        description="Ids that are told apart, the commonest words first; all rarer words share one.",
    )
    length: int = Field(
        256,
        ge=8,
        le=4096,
        title="Length",
        description="Tokens of each review: longer ones keep their end, shorter ones are filled up in front.",
        json_schema_extra={"unit": "tokens"},
    )


def describe(options: Options) -> DatasetInfo:
    """Token ids, two classes, with a test split."""
    return DatasetInfo(
        shape=(options.length,), classes=2, tokens=options.vocabulary, samples=25_000, test_samples=25_000
    )


def probe(options: Options, home: Path) -> str | None:
    """Why this host cannot load it, else None."""
    return KEPT.probe(home)


def load(options: Options, home: Path) -> Arrays:
    """Features [25000, length] int32, targets 1 for a kind review. Raises DataError."""
    KEPT.fetch(home)
    file = KEPT.place(home, "imdb.npz")
    try:
        with zipfile.ZipFile(file) as archive:
            parts = [_member(archive, name) for name in ("x_train", "y_train", "x_test", "y_test")]
        reviews = [_ids(parts[index], options) for index in (0, 2)]
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, pickle.UnpicklingError) as error:
        raise KEPT.unreadable(file, error, home) from error
    for features, targets in ((reviews[0], parts[1]), (reviews[1], parts[3])):
        if len(features) != len(targets):
            raise DataError(f"{file} does not hold IMDB: {len(features)} reviews, {len(targets)} classes.")
    return Arrays(reviews[0], parts[1].astype("int32"), reviews[1], parts[3].astype("int32"))


def _member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as stream:
        return pickled.load_objects(stream)


def _ids(reviews: NDArray[Any], options: Options) -> NDArray[Any]:
    """Ranks of words as ids, int32 [reviews, length]."""
    import numpy as np

    found = np.full((len(reviews), options.length), PADDING, np.int32)
    for row, review in zip(found, reviews, strict=True):
        ids = np.concatenate([[START], np.asarray(review, np.int64) + FIRST_WORD])[-options.length :]
        row[len(row) - len(ids) :] = np.where(ids < options.vocabulary, ids, UNKNOWN)
    return found
