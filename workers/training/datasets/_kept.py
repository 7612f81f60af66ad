"""Datasets that Keras downloads once and keeps: where they lie, whether they can be had, and how else to bring them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from workers.training.arrays import DataError
from workers.training.datasets._reach import out_of_reach


class Kept(NamedTuple):
    """`keras` is its module in keras.datasets, `folder` lies below Keras' datasets, and holds `files`.

    `source` is what Keras downloads: one of the files, a folder of them (ends in a slash), or an archive of them.
    """

    title: str
    keras: str
    source: str
    folder: str
    files: tuple[str, ...]

    def place(self, home: Path, name: str) -> Path:
        """Where one of its files lies or would lie."""
        return home / "datasets" / self.folder / name

    def probe(self, home: Path) -> str | None:
        """Why this host cannot load it, else None."""
        missing = self._missing(home)
        reason = out_of_reach(self.source + (missing[0] if self.source.endswith("/") else "")) if missing else None
        return f"{self.title} is not complete on this host, which {reason}. {self.remedy(home)}" if reason else None

    def fetch(self, home: Path) -> None:
        """Have all files here, by Keras' download if need be. Raises DataError."""
        problem = self.probe(home)
        if problem:
            raise DataError(problem)
        if self._missing(home):
            self._download(home)

    def remedy(self, home: Path) -> str:
        """What to do by hand."""
        return f"Put {', '.join(self.files)} from {self.source} into {self.place(home, '')}."

    def unreadable(self, file: Path, error: Exception, home: Path) -> DataError:
        """A file is there and is not what it should be."""
        return DataError(f"{file} cannot be read as {self.title} ({error}). Delete it. {self.remedy(home)}")

    def _missing(self, home: Path) -> tuple[str, ...]:
        return tuple(name for name in self.files if not self.place(home, name).exists())

    def _download(self, home: Path) -> None:
        import keras

        try:
            getattr(keras.datasets, self.keras).load_data()
        except Exception as error:
            raise DataError(f"{self.title} cannot be downloaded ({error}). {self.remedy(home)}") from error
        if self._missing(home):
            raise DataError(f"Keras did not keep {self.title} under {home}. Set KERAS_HOME to {home}.")
