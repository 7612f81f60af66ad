"""Scikit-learn's diabetes table: how far the disease went within a year, by ten measurements."""

from __future__ import annotations

from pathlib import Path

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays
from workers.training.datasets import _bundled as bundled

title = "Diabetes"
summary = (
    "Regression: 442 patients, ten measurements of each, and the disease's progression after a year (Efron et al., "
    "2004). From scikit-learn, no download."
)

FEATURES, TARGETS = "diabetes_data_raw.csv.gz", "diabetes_target.csv.gz"


class Options(_Options):
    """Nothing to choose."""


def describe(options: Options) -> DatasetInfo:
    """Rows of ten numbers, one number to predict, no test split."""
    return DatasetInfo(task="regression", shape=(10,), samples=442)


def probe(options: Options, home: Path) -> str | None:
    """Why this host cannot load it, else None."""
    return bundled.missing(FEATURES) or bundled.missing(TARGETS)


def load(options: Options, home: Path) -> Arrays:
    """Features [442, 10] and targets [442, 1], both standardized: one unit of a target is 77. Raises DataError."""
    features = bundled.table(FEATURES, separator=None)
    return Arrays(bundled.standardized(features), bundled.standardized(bundled.table(TARGETS)))
