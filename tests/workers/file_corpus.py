"""Files of each kind, written without the libraries that read them where that keeps TensorFlow out."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workers.contract.files.records import _masked

COLOURS = ("blue", "green", "red")


def table_rows(count: int, seed: int = 0) -> list[str]:
    """Lines of `a,b,colour,label`: the label says whether a + b, or one more where it is red, is positive."""
    random = np.random.default_rng(seed)
    numbers, colours = random.normal(size=(count, 2)), random.choice(COLOURS, count)
    labels = np.where(numbers.sum(axis=1) + (colours == "red") > 0, "up", "down")
    return [f"{a:.4f},{b:.4f},{colour},{label}" for (a, b), colour, label in zip(numbers, colours, labels, strict=True)]


def write_table(path: Path, rows: Iterable[str], header: str = "a,b,colour,label") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    """A picture, uint8 [height, width, 3]."""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def write_pictures(folder: Path, count: int, size: int = 8) -> Path:
    """Reddish and bluish pictures, `count` of each."""
    random = np.random.default_rng(0)
    for place, name in ((0, "red"), (2, "blue")):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = random.integers(0, 100, (size, size, 3), dtype=np.uint8)
            pixels[..., place] += 150
            (folder / name / f"{number:04}.png").write_bytes(png(pixels))
    return folder


def example(features: Mapping[str, Any]) -> bytes:
    """A tf.train.Example of bytes, whole numbers, or float arrays."""
    entries = b"".join(_field(1, _field(1, name.encode()) + _field(2, _feature(v))) for name, v in features.items())
    return _field(1, entries)


def write_records(path: Path, records: Iterable[bytes]) -> Path:
    with path.open("wb") as stream:
        for record in records:
            length = struct.pack("<Q", len(record))
            stream.write(length + struct.pack("<I", _masked(length)) + record + struct.pack("<I", _masked(record)))
    return path


def number_records(count: int, seed: int = 0) -> Iterable[bytes]:
    """Four numbers `x`, and whether their sum is positive as `label`."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        x = random.normal(size=4).astype("<f4")
        yield example({"x": x, "label": int(x.sum() > 0)})


def _feature(value: Any) -> bytes:
    if isinstance(value, bytes):
        return _field(1, _field(1, value))
    if isinstance(value, int):
        return _field(3, _field(1, _varint(value % 2**64)))
    return _field(2, _field(1, np.asarray(value, "<f4").tobytes()))


def _field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
