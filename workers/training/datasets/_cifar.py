"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009) as Keras keeps them: pickles of 3,072 bytes a picture."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workers.training.arrays import Arrays, DataError
from workers.training.datasets import _pickled as pickled
from workers.training.datasets._reach import out_of_reach

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDE = 32


class Collection(NamedTuple):
    """One of the two: `keras` its name there, `folder` below Keras' datasets, `labels` the key of its targets."""

    title: str
    keras: str
    source: str
    folder: str
    training: tuple[str, ...]
    test: str
    labels: str

    def probe(self, home: Path) -> str | None:
        """Why this host cannot load it, else None."""
        reason = out_of_reach(self.source) if self._missing(home) else None
        return f"{self.title} is not complete on this host, which {reason}. {self._remedy(home)}" if reason else None

    def load(self, home: Path) -> Arrays:
        """Features [samples, 32, 32, 3] uint8, scaled by 1/255. Raises DataError."""
        import numpy as np

        problem = self.probe(home)
        if problem:
            raise DataError(problem)
        if self._missing(home):
            self._download(home)
        parts = [self._read(home, name) for name in self.training]
        pictures, classes = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        return Arrays(pictures, classes, *self._read(home, self.test), scale=1 / 255)

    def _read(self, home: Path, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        import numpy as np

        file = self._place(home) / name
        try:
            with file.open("rb") as stream:
                found = pickled.load(stream)
            # Each picture's red plane comes first, then green, then blue.
            planes = np.asarray(found[b"data"], np.uint8).reshape(-1, 3, SIDE, SIDE)
            classes = np.asarray(found[self.labels.encode()], np.int32)
            if len(planes) != len(classes):
                raise ValueError(f"{len(planes)} pictures and {len(classes)} classes")
        except (OSError, EOFError, ValueError, KeyError, TypeError, pickle.UnpicklingError) as error:
            raise DataError(f"{file} cannot be read ({error}). Delete it. {self._remedy(home)}") from error
        return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), classes

    def _place(self, home: Path) -> Path:
        return home / "datasets" / self.folder

    def _missing(self, home: Path) -> bool:
        return any(not (self._place(home) / name).exists() for name in (*self.training, self.test))

    def _remedy(self, home: Path) -> str:
        return f"Put {', '.join((*self.training, self.test))} out of {self.source} into {self._place(home)}."

    def _download(self, home: Path) -> None:
        import keras

        try:
            getattr(keras.datasets, self.keras).load_data()
        except Exception as error:
            raise DataError(f"{self.title} cannot be downloaded ({error}). {self._remedy(home)}") from error
        if self._missing(home):
            raise DataError(f"Keras did not keep {self.title} under {home}. Set KERAS_HOME to {home}.")


CIFAR_10 = Collection(
    "CIFAR-10",
    "cifar10",
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    "cifar-10-batches-py-target/cifar-10-batches-py",
    tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test_batch",
    "labels",
)
CIFAR_100 = Collection(
    "CIFAR-100",
    "cifar100",
    "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    "cifar-100-python-target/cifar-100-python",
    ("train",),
    "test",
    "fine_labels",
)
