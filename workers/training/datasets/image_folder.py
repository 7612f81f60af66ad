"""Pictures in folders that are named as their classes, or a zip file of such folders."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from workers.contract.data import DatasetInfo
from workers.contract.files.facts import Facts
from workers.contract.files.images import inspect_images, pictures_in
from workers.contract.problems import SpecInvalid
from workers.training.arrays import Arrays, DataError
from workers.training.datasets._files import IN_MEMORY_BYTES, FileOptions, facts_of
from workers.training.datasets._pictures import decoded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.streams.streaming import Rows

title = "Image folder"
summary = "Pictures (PNG, JPEG, GIF, BMP) in a folder for each class, or a zip file of such folders."
by_hand = True


class Options(FileOptions):
    """The size that every picture is brought to."""

    height: int | None = Field(None, ge=1, le=4096, title="Height", description="Empty for the first picture's.")
    width: int | None = Field(None, ge=1, le=4096, title="Width", description="Empty for the first picture's.")
    channels: Literal["auto", "grey", "colour"] = Field(
        "auto", title="Channels", description="Auto: as the first picture."
    )


def inspect(path: Path, options: Options) -> Facts:
    """What the folder or the zip file holds. Raises SpecInvalid."""
    return inspect_images(path)


def describe(options: Options) -> DatasetInfo:
    """Pictures of one size. As far as sharding is concerned, each is a file."""
    facts = facts_of(options)
    shape = _shape(options)
    size = facts.samples * shape[0] * shape[1] * shape[2]
    loaded = options.in_memory == "always" or (options.in_memory == "auto" and size <= IN_MEMORY_BYTES)
    return DatasetInfo(
        shape=shape,
        classes=len(facts.classes),
        samples=facts.samples,
        bytes_per_value=1,
        files=None if loaded else facts.samples,
    )


def stream(options: Options) -> PictureSource:
    """The pictures, read while training. Raises DataError."""
    return PictureSource(options)


def load(options: Options, home: Path) -> Arrays:
    """Features uint8 [pictures, height, width, channels], scaled by 1/255. Raises DataError."""
    import numpy as np

    source = PictureSource(options)
    features, targets = source.decode((np.arange(len(source.pieces)), source.labels))
    return Arrays(features, targets, scale=source.scale)


def _shape(options: Options) -> tuple[int, int, int]:
    height, width, channels = facts_of(options).shape
    chosen = {"auto": channels, "grey": 1, "colour": 3}[options.channels]
    return options.height or height, options.width or width, chosen


class PictureSource:
    """Each picture a piece, so that the order of pieces is the order of pictures (streaming.Source)."""

    scale = 1 / 255
    row_bytes = 16

    def __init__(self, options: Options) -> None:
        """Raises DataError when the pictures are not those that were looked at."""
        import numpy as np

        from workers.training.streams.streaming import Piece

        facts = facts_of(options)
        self._path = Path(options.file or "")
        self._shape = _shape(options)
        self._archive: zipfile.ZipFile | None = None
        try:
            pictures = pictures_in(self._path)
        except SpecInvalid as error:
            raise DataError(f"{self._path} cannot be read any more: {error}.") from error
        if (len(pictures), sorted({each.label for each in pictures})) != (facts.samples, list(facts.classes)):
            raise DataError(f"{self._path} has changed since it was looked at; submit the job again.")
        numbers = {name: number for number, name in enumerate(facts.classes)}
        self._names = [picture.name for picture in pictures]
        self.labels: NDArray[Any] = np.array([numbers[picture.label] for picture in pictures], np.int32)
        self.pieces = [Piece(number, 1) for number in range(len(pictures))]

    def read(self, piece: int) -> Iterator[Rows]:
        """The picture's number and its label; it is read when it is decoded."""
        import numpy as np

        yield np.array([piece]), self.labels[piece : piece + 1]

    def decode(self, rows: Rows) -> Rows:
        """Uint8 [rows, height, width, channels]. Raises DataError."""
        names = [self._names[number] for number in rows[0]]
        return decoded(self._contents(names), names, self._shape), rows[1]

    def _contents(self, names: list[str]) -> list[bytes]:
        try:
            if self._path.is_dir():
                return [(self._path / name).read_bytes() for name in names]
            self._archive = self._archive or zipfile.ZipFile(self._path)
            return [self._archive.read(name) for name in names]
        except (OSError, zipfile.BadZipFile, KeyError, RuntimeError, EOFError) as error:
            raise DataError(f"A picture of {self._path} cannot be read ({error}); put it there again.") from error
