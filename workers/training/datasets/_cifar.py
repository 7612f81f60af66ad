"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009) as Keras keeps them: pickles of 3,072 bytes a picture."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workers.training.arrays import Arrays
from workers.training.datasets import _pickled as pickled
from workers.training.datasets._kept import Kept

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDE = 32


class Collection(NamedTuple):
    """One of the two: `labels` is the key of its targets; the last of its files is the test split."""

    kept: Kept
    labels: str

    def load(self, home: Path) -> Arrays:
        """Features [samples, 32, 32, 3] uint8, scaled by 1/255. Raises DataError."""
        import numpy as np

        self.kept.fetch(home)
        *training, test = (self._read(home, name) for name in self.kept.files)
        pictures, classes = (np.concatenate(parts) for parts in zip(*training, strict=True))
        return Arrays(pictures, classes, *test, scale=1 / 255)

    def _read(self, home: Path, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        import numpy as np

        file = self.kept.place(home, name)
        try:
            with file.open("rb") as stream:
                found = pickled.load(stream)
            # Each picture's red plane comes first, then green, then blue.
            planes = np.asarray(found[b"data"], np.uint8).reshape(-1, 3, SIDE, SIDE)
            classes = np.asarray(found[self.labels.encode()], np.int32)
            if len(planes) != len(classes):
                raise ValueError(f"{len(planes)} pictures and {len(classes)} classes")
        except (OSError, EOFError, ValueError, KeyError, TypeError, pickle.UnpicklingError) as error:
            raise self.kept.unreadable(file, error, home) from error
        return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), classes


CIFAR_10 = Collection(
    Kept(
        "CIFAR-10",
        "cifar10",
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        "cifar-10-batches-py-target/cifar-10-batches-py",
        (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"),
    ),
    "labels",
)
CIFAR_100 = Collection(
    Kept(
        "CIFAR-100",
        "cifar100",
        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        "cifar-100-python-target/cifar-100-python",
        ("train", "test"),
    ),
    "fine_labels",
)
