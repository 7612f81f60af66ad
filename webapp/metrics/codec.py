"""Columns of numbers to bytes and back, exactly: deltas for integers, the shortest lossless float for values."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LEVEL = 1
WORTH = 0.7
"""Compressed only where it shrinks to this: inflating noise costs a reader more than its bytes cost the disk."""
_CONSTANT = b"="
_FIRST = struct.Struct("<q")
_DELTAS = ("i1", "<i2", "<i4", "<i8")
_FLOATS = ("<f4", "<f8")


def encode_ints(numbers: Ints, *, packed: bool) -> bytes:
    """64-bit integers; a column that rises evenly takes 17 bytes however long it is."""
    deltas = np.diff(numbers)  # wraps around at 64 bits, as does the sum that undoes it
    first = _FIRST.pack(int(numbers[0]))
    if not len(deltas) or bool((deltas == deltas[0]).all()):
        return _CONSTANT + first + _FIRST.pack(int(deltas[0]) if len(deltas) else 0)
    low, high = int(deltas.min()), int(deltas.max())
    kind = next(k for k, name in enumerate(_DELTAS) if _fits(low, high, np.dtype(name)))
    return _body(first, deltas.astype(_DELTAS[kind]), kind, packed)


def decode_ints(data: bytes, count: int) -> Ints:
    """What `encode_ints` was given."""
    first = _FIRST.unpack_from(data, 1)[0]
    if data[:1] == _CONSTANT:
        delta = _FIRST.unpack_from(data, 9)[0]
        even: Ints = first + delta * np.arange(count, dtype=np.int64)
        return even
    numbers = np.empty(count, np.int64)
    numbers[0] = first
    numbers[1:] = _unbody(data, 9, _DELTAS, count - 1)
    return np.cumsum(numbers, out=numbers)


def encode_floats(numbers: Floats, *, packed: bool) -> bytes:
    """Doubles, NaN and infinities included; 32 bits each where not a bit is lost by it."""
    with np.errstate(over="ignore", invalid="ignore"):
        short = numbers.astype(np.float32)
        lossless = np.array_equal(short.astype(np.float64).view(np.int64), numbers.view(np.int64))
    return _body(b"", short.astype("<f4"), 0, packed) if lossless else _body(b"", numbers.astype("<f8"), 1, packed)


def decode_floats(data: bytes, count: int) -> Floats:
    """What `encode_floats` was given."""
    with np.errstate(invalid="ignore"):
        return _unbody(data, 1, _FLOATS, count).astype(np.float64)


def _fits(low: int, high: int, dtype: np.dtype[np.signedinteger]) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= low and high <= limits.max)


def _body(head: bytes, column: npt.NDArray[np.generic], kind: int, packed: bool) -> bytes:
    raw = column.tobytes()
    if packed:
        # Equal bytes of all numbers side by side: what hardly changes along a curve compresses to nothing.
        width = column.dtype.itemsize
        small = zlib.compress(np.frombuffer(raw, np.uint8).reshape(-1, width).T.tobytes(), LEVEL)
        if len(small) < WORTH * len(raw):
            return bytes([ord("A") + kind]) + head + small
    return bytes([ord("a") + kind]) + head + raw


def _unbody(data: bytes, offset: int, kinds: tuple[str, ...], count: int) -> npt.NDArray[np.generic]:
    kind = data[0]
    if kind >= ord("a"):
        return np.frombuffer(data, kinds[kind - ord("a")], count, offset)
    dtype = np.dtype(kinds[kind - ord("A")])
    planes = np.frombuffer(zlib.decompress(memoryview(data)[offset:]), np.uint8).reshape(dtype.itemsize, count)
    return planes.T.copy().view(dtype).reshape(count)
