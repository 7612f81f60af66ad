"""Scikit-learn's handwritten digits: real, small, and there without a network."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays, DataError

title = "Digits"
summary = "1,797 handwritten digits of 8 x 8 pixels from scikit-learn. Real data, no download, seconds to train."

SAMPLES = 1797


class Options(_Options):
    """Nothing to choose."""


def describe(options: Options) -> DatasetInfo:
    """Grey pictures, ten classes, no test split."""
    return DatasetInfo(shape=(8, 8, 1), classes=10, samples=SAMPLES)


def probe(options: Options, home: Path) -> str | None:
    """Why this host cannot load it, else None."""
    return None if _file() else "scikit-learn is not installed here. Install it with the worker's requirements."


def load(options: Options, home: Path) -> Arrays:
    """Features [1797, 8, 8, 1] float32 in 0..1. Raises DataError."""
    import numpy as np

    file = _file()
    if file is None:
        raise DataError("The digits dataset needs scikit-learn; install it with the worker's requirements.")
    with gzip.open(file, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
    features = (table[:, :-1] / 16).reshape(-1, 8, 8, 1)
    return Arrays(features, table[:, -1].astype(np.int32))


def _file() -> Path | None:
    # Found without importing scikit-learn, which would cost a second of every start.
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
    return file if file.exists() else None
