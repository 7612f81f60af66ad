"""Fashion-MNIST, through Keras and its cache."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.contract.base import Options as _Options
from workers.contract.data import DatasetInfo
from workers.training.arrays import Arrays, DataError
from workers.training.datasets._kept import Kept

if TYPE_CHECKING:
    from numpy.typing import NDArray

title = "Fashion-MNIST"
summary = "70,000 pictures of clothes of 28 x 28 pixels (Zalando). Harder than MNIST. Downloaded once, 31 MB."

KEPT = Kept(
    "Fashion-MNIST",
    "fashion_mnist",
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    "fashion-mnist",
    (
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    ),
)


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
    KEPT.fetch(home)
    images, labels, test_images, test_labels = (_read(KEPT.place(home, name), home) for name in KEPT.files)
    for pictures, classes in ((images, labels), (test_images, test_labels)):
        if pictures.shape[1:] != (28, 28) or len(pictures) != len(classes):
            raise DataError(f"{KEPT.place(home, '')} does not hold Fashion-MNIST. {KEPT.remedy(home)}")
    return Arrays(
        images[..., None], labels.astype("int32"), test_images[..., None], test_labels.astype("int32"), scale=1 / 255
    )


def _read(file: Path, home: Path) -> NDArray[Any]:
    """An IDX file: two zero bytes, type 8 (uint8), the number of dimensions, each as big-endian int32, the values."""
    import numpy as np

    try:
        with gzip.open(file, "rb") as stream:
            content = stream.read()
        zeros, kind, dimensions = struct.unpack_from(">HBB", content)
        if (zeros, kind) != (0, 8):
            raise ValueError("not an IDX file of bytes")
        shape = struct.unpack_from(f">{dimensions}I", content, 4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
    except (OSError, EOFError, ValueError, struct.error, zlib.error) as error:
        raise KEPT.unreadable(file, error, home) from error
