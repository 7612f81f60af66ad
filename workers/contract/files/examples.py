"""tf.train.Example without TensorFlow: just enough of its protocol buffer to see which features there are.

As in https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/feature.proto: a Feature is one of a
list of bytes (field 1), of floats (2) and of int64 (3), the last two packed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LISTS = {1: "bytes", 2: "number", 3: "integer"}


class Found(NamedTuple):
    """One feature of one example: `length` values, the first of them as it is; None where there is none."""

    type: str
    length: int
    first: bytes | int | float | None


def features_of(example: bytes) -> dict[str, Found]:
    """By name. Raises ValueError for what is no tf.train.Example."""
    found: dict[str, Found] = {}
    for features in _fields(example, 1):
        for entry in _fields(features, 1):
            name = b"".join(_fields(entry, 1)).decode()
            found[name] = _feature(b"".join(_fields(entry, 2)))
    return found


def _feature(message: bytes) -> Found:
    for number, kind in LISTS.items():
        for values in _fields(message, number):
            if kind == "bytes":
                items = list(_fields(values, 1))
                return Found(kind, len(items), items[0] if items else None)
            packed = b"".join(_fields(values, 1))
            if kind == "number":
                return Found(kind, len(packed) // 4, struct.unpack_from("<f", packed)[0] if len(packed) >= 4 else None)
            numbers = _varints(packed)
            return Found(kind, len(numbers), numbers[0] if numbers else None)
    return Found("bytes", 0, None)


def _fields(message: bytes, wanted: int) -> Iterator[bytes]:
    """The values of one field; those of numbers in a list that is not packed are given as they stand."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, wire = key >> 3, key & 7
        start = place
        if wire == BYTES:
            length, place = _varint(message, place)
            start, place = place, place + length
        elif wire == VARINT:
            _, place = _varint(message, place)
        elif wire in (FIXED64, FIXED32):
            place += 8 if wire == FIXED64 else 4
        else:
            raise ValueError("not a protocol buffer")
        if place > len(message):
            raise ValueError("a protocol buffer that ends too early")
        if number == wanted:
            yield message[start:place]


def _varints(packed: bytes) -> list[int]:
    numbers: list[int] = []
    place = 0
    while place < len(packed):
        number, place = _varint(packed, place)
        numbers.append(number - 2**64 if number >= 2**63 else number)
    return numbers


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """The number that begins at `place`, and where the next thing begins."""
    number = shift = 0
    while place < len(message) and shift < 64:
        byte = message[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if not byte & 0x80:
            return number, place
    raise ValueError("a number that does not end")
