"""Scikit-learn's Wisconsin breast cancer table: class 0 malignant (212), 1 benign (357)."""

from __future__ import annotations

from pathlib import Path

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays
from workers.training.datasets import _bundled as bundled

title = "Breast cancer"
summary = "569 tumours, 30 measurements of each (Wisconsin, 1995), malignant or benign. From scikit-learn, no download."

FILE = "breast_cancer.csv"


class Options(_Options):
    """Nothing to choose."""


def describe(options: Options) -> DatasetInfo:
    """Rows of 30 measurements, 2 classes, no test split."""
    return DatasetInfo(shape=(30,), classes=2, samples=569)


def probe(options: Options, home: Path) -> str | None:
    """Why this host cannot load it, else None."""
    return bundled.missing(FILE)


def load(options: Options, home: Path) -> Arrays:
    """Features [569, 30] float32, standardized. Raises DataError."""
    import numpy as np

    table = bundled.table(FILE, heads=1)
    return Arrays(bundled.standardized(table[:, :-1]), table[:, -1].astype(np.int32))
