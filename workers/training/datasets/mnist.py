"""MNIST, through Keras and its cache."""

from __future__ import annotations

import zipfile
from pathlib import Path

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays, DataError
from workers.training.datasets._kept import Kept

title = "MNIST"
summary = "70,000 handwritten digits of 28 x 28 pixels (LeCun and Cortes). Downloaded once, 11 MB."

KEPT = Kept("MNIST", "mnist", "https://storage.googleapis.com/tensorflow/tf-keras-datasets/", "", ("mnist.npz",))


class Options(_Options):
    """Nothing to choose."""


def describe(options: Options) -> DatasetInfo:
    """Grey pictures, ten classes, with a test split."""
    return DatasetInfo(shape=(28, 28, 1), classes=10, samples=60_000, test_samples=10_000, bytes_per_value=1)


def probe(options: Options, home: Path) -> str | None:
    """Why this host cannot load it, else None."""
    return KEPT.probe(home)


def load(options: Options, home: Path) -> Arrays:
    """Features [60000, 28, 28, 1] uint8, scaled by 1/255. Raises DataError."""
    import numpy as np

    KEPT.fetch(home)
    file = KEPT.place(home, "mnist.npz")
    try:
        with np.load(file, allow_pickle=False) as archive:
            parts = [archive[name] for name in ("x_train", "y_train", "x_test", "y_test")]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise KEPT.unreadable(file, error, home) from error
    for pictures, labels in (parts[:2], parts[2:]):
        if pictures.shape[1:] != (28, 28) or len(pictures) != len(labels):
            raise DataError(
                f"{file} does not hold MNIST: found pictures of shape {pictures.shape}. {KEPT.remedy(home)}"
            )
    return Arrays(
        parts[0][..., None], parts[1].astype("int32"), parts[2][..., None], parts[3].astype("int32"), scale=1 / 255
    )
