"""Scikit-learn's wine table: three classes of 59, 71 and 48."""

from __future__ import annotations

from pathlib import Path

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays
from workers.training.datasets import _bundled as bundled

title = "Wine"
summary = "178 wines of three growers, 13 chemical measurements of each (Forina, 1991). From scikit-learn, no download."

FILE = "wine_data.csv"


class Options(_Options):
    """Nothing to choose."""


def describe(options: Options) -> DatasetInfo:
    """Rows of 13 measurements, 3 classes, no test split."""
    return DatasetInfo(shape=(13,), classes=3, samples=178)


def probe(options: Options, home: Path) -> str | None:
    """Why this host cannot load it, else None."""
    return bundled.missing(FILE)


def load(options: Options, home: Path) -> Arrays:
    """Features [178, 13] float32, standardized. Raises DataError."""
    import numpy as np

    table = bundled.table(FILE, heads=1)
    return Arrays(bundled.standardized(table[:, :-1]), table[:, -1].astype(np.int32))
