"""A glimpse of a dataset for its page: the first rows of a table, some pictures, how a text begins."""

from __future__ import annotations

import csv
import itertools
import math
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.contract.files.examples import Found, features_of
from workers.contract.files.images import pictures_in
from workers.contract.files.reading import csv_header, open_parquet
from workers.contract.files.records import records_of
from workers.contract.library import Preview
from workers.sandbox.glimpses import PICTURES, ROWS, address, cells, of_arrays, within

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEXT = 1_500
MOST_ROW_BYTES = 2**24
PICTURE_BYTES = 60_000
KINDS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"BM": "bmp"}


def preview_of(path: Path, format_name: str) -> Preview | None:
    """What can be shown of a file that has been looked at; None where that is nothing."""
    looks: dict[str, Callable[[Path], Preview | None]] = {
        "csv": _csv,
        "parquet": _parquet,
        "npz": _arrays,
        "image_folder": _images,
        "tfrecord": _records,
        "text": _text,
    }
    return looks[format_name](path) if format_name in looks else None


def _csv(path: Path) -> Preview:
    names, separator = csv_header(path)
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = itertools.islice(csv.reader(file, delimiter=separator), 1, ROWS + 1)
        return Preview(rows=(cells(names), *map(cells, rows)))


def _text(path: Path) -> Preview:
    with open(path, encoding="utf-8") as file:
        return Preview(text=file.read(TEXT))


def _parquet(path: Path) -> Preview:
    opened = open_parquet(path)
    batch = next(opened.iter_batches(ROWS, use_threads=False))
    columns = [["" if value is None else str(value) for value in column.to_pylist()] for column in batch.columns]
    return Preview(rows=(cells(batch.schema.names), *map(cells, zip(*columns, strict=True))))


def _arrays(path: Path) -> Preview | None:
    """The first rows of the array with the most values a row, beside those of one with one value a row."""
    with zipfile.ZipFile(path) as archive:
        heads = [head for name in archive.namelist() if (head := _head(archive, name)) is not None]
    if not heads:
        return None
    features = max(heads, key=lambda head: math.prod(head.shape[1:]))
    labels = next((head for head in heads if head is not features and head.ndim == 1), None)
    if labels is not None and len(labels) != len(features):
        labels = None
    return of_arrays(features, labels)


def _head(archive: zipfile.ZipFile, name: str) -> NDArray[Any] | None:
    """The first rows of an array without reading the rest; None for one that does not lie row by row."""
    import numpy as np
    from numpy.lib import format as npy

    with archive.open(name) as stream:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = read(stream)
        row_bytes = math.prod(shape[1:]) * dtype.itemsize
        if not shape or not all(shape) or (by_columns and len(shape) > 1) or row_bytes > MOST_ROW_BYTES:
            return None
        rows = min(shape[0], PICTURES)
        content = stream.read(rows * row_bytes)
    return np.frombuffer(content, dtype).reshape(rows, *shape[1:])


def _records(path: Path) -> Preview:
    """Pictures where the examples hold one, with the first whole number beside it as label; else rows."""
    found = [features_of(record) for record in itertools.islice(records_of(path), PICTURES)]
    pictures = [shown for each in found if (shown := _picture(each))]
    if pictures:
        return Preview(pictures=within(pictures))
    names = sorted({name for each in found for name in each})
    rows = ([_words(each.get(name)) for name in names] for each in found[:ROWS])
    return Preview(rows=(cells(names), *map(cells, rows)))


def _picture(example: Mapping[str, Found]) -> tuple[str, str] | None:
    label = next((str(found.first) for found in example.values() if isinstance(found.first, int)), "")
    shown = (_shown(found.first) for found in example.values() if isinstance(found.first, bytes))
    picture = next((each for each in shown if each), None)
    return (label, picture) if picture else None


def _words(found: Found | None) -> str:
    """The first value, and that there are more."""
    if found is None or found.first is None:
        return ""
    more = f" \u2026 ({found.length:,})" if found.length > 1 else ""
    if isinstance(found.first, bytes):
        text = found.first.decode(errors="replace")
        return (text if text.isprintable() else f"{len(found.first):,} bytes") + more
    return (f"{found.first:.4g}" if isinstance(found.first, float) else str(found.first)) + more


def _images(path: Path) -> Preview:
    """Evenly out of all, which stand by class, each with its label and its bytes as a `data:` address."""
    found = pictures_in(path)
    shown = []
    with zipfile.ZipFile(path) as archive:
        for picture in found[:: max(1, len(found) // PICTURES)][:PICTURES]:
            small = archive.getinfo(picture.name).file_size <= PICTURE_BYTES
            address_of = _shown(archive.read(picture.name)) if small else None
            if address_of:
                shown.append((picture.label, address_of))
    return Preview(pictures=within(shown))


def _shown(content: bytes) -> str | None:
    kind = next((kind for start, kind in KINDS.items() if content.startswith(start)), None)
    return address(kind, content) if kind and len(content) <= PICTURE_BYTES else None
