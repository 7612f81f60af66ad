"""CIFAR-10, through Keras and its cache."""

from __future__ import annotations

from pathlib import Path

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays
from workers.training.datasets._cifar import CIFAR_10

title = "CIFAR-10"
summary = "60,000 colour pictures of 32 x 32 pixels in 10 classes (Krizhevsky). Downloaded once, 170 MB."


class Options(_Options):
    """Nothing to choose."""


def describe(options: Options) -> DatasetInfo:
    """Colour pictures, 10 classes, with a test split."""
    return DatasetInfo(shape=(32, 32, 3), classes=10, samples=50_000, test_samples=10_000, bytes_per_value=1)


def probe(options: Options, home: Path) -> str | None:
    """Why this host cannot load it, else None."""
    return CIFAR_10.kept.probe(home)


def load(options: Options, home: Path) -> Arrays:
    """Features [50000, 32, 32, 3] uint8, scaled by 1/255. Raises DataError."""
    return CIFAR_10.load(home)
