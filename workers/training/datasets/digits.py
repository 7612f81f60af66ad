"""Scikit-learn's handwritten digits: real, small, and there without a network."""

from __future__ import annotations

from pathlib import Path

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays
from workers.training.datasets import _bundled as bundled

title = "Digits"
summary = "1,797 handwritten digits of 8 x 8 pixels from scikit-learn. Real data, no download, seconds to train."

FILE = "digits.csv.gz"


class Options(_Options):
    """Nothing to choose."""


def describe(options: Options) -> DatasetInfo:
    """Grey pictures, ten classes, no test split."""
    return DatasetInfo(shape=(8, 8, 1), classes=10, samples=1797)


def probe(options: Options, home: Path) -> str | None:
    """Why this host cannot load it, else None."""
    return bundled.missing(FILE)


def load(options: Options, home: Path) -> Arrays:
    """Features [1797, 8, 8, 1] float32 in 0..1. Raises DataError."""
    import numpy as np

    table = bundled.table(FILE).astype(np.float32)
    return Arrays((table[:, :-1] / 16).reshape(-1, 8, 8, 1), table[:, -1].astype(np.int32))
