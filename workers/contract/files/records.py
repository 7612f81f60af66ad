"""Looks at TFRecords: a length, its checksum, an example, its checksum, and again."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.contract.files.examples import Found, features_of
from workers.contract.files.facts import Facts, Feature, Part, refuse
from workers.contract.files.parts import digest, files_of
from workers.contract.files.pictures import HEAD_BYTES, format_of, size_of

MOST_RECORD = 2**30
MOST_FEATURES = 2_000
REMEDY = "Write it with tf.io.TFRecordWriter, without compression"


def inspect_records(path: Path) -> Facts:
    """Facts of a TFRecord file, or of all *.tfrecord and *.tfrecords of a folder. Raises SpecInvalid.

    Reads every example, for the lengths of its features and the least and greatest of its labels.
    """
    files = files_of(path, (".tfrecord", ".tfrecords"))
    seen: dict[str, _Seen] = {}
    parts = []
    samples = 0
    for file in files:
        own = 0
        for record in records_of(file):
            _learn(seen, record, samples, file)
            own, samples = own + 1, samples + 1
        parts.append(Part(name=file.name, samples=own, bytes=file.stat().st_size))
    features = tuple(sorted((each.feature(samples) for each in seen.values()), key=lambda each: each.name))
    if not features:
        refuse("file", "holds examples without features", files[0].name, "Write tf.train.Examples with features")
    return Facts(
        kind="tfrecord",
        samples=samples,
        bytes=sum(part.bytes for part in parts),
        sha256=digest(files),
        parts=tuple(parts),
        features=features,
        shape=next((each.picture for each in seen.values() if each.picture), ()),
    )


def records_of(file: Path) -> Iterator[bytes]:
    """The examples of one file. Raises SpecInvalid for what is no TFRecord file, or a torn one."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        place = 0
        while place < size:
            head = stream.read(12)
            if place == 0 and head[:2] == b"\x1f\x8b":
                refuse("file", "is compressed", file.name, REMEDY)
            if not is_head(head):
                what = f"is torn at byte {place:,}" if place else "is not a TFRecord file"
                refuse("file", what, file.name, REMEDY)
            length = struct.unpack_from("<Q", head)[0]
            if length > MOST_RECORD or place + 16 + length > size:
                refuse("file", f"is torn at byte {place:,}", file.name, REMEDY)
            yield stream.read(length)
            stream.seek(4, 1)
            place += 16 + length


def is_head(head: bytes) -> bool:
    """Whether these twelve bytes are a record's length and its checksum."""
    return len(head) == 12 and _masked(head[:8]) == struct.unpack_from("<I", head, 8)[0]


def _learn(seen: dict[str, _Seen], record: bytes, number: int, file: Path) -> None:
    try:
        found = features_of(record)
    except (ValueError, UnicodeDecodeError):
        refuse("file", f"holds what is no tf.train.Example (number {number:,})", file.name, REMEDY)
    for name, feature in found.items():
        if name not in seen:
            if len(seen) >= MOST_FEATURES:
                refuse("file", f"has more than {MOST_FEATURES:,} features", file.name, "Join them to longer ones")
            seen[name] = _Seen(name, feature)
        seen[name].learn(feature)


class _Seen:
    """What is known of one feature so far."""

    def __init__(self, name: str, first: Found) -> None:
        self._name, self._type, self._length = name, first.type, first.length
        self._count = 0
        self._ragged = False
        self._low: int | None = None
        self._high: int | None = None
        self.picture = size_of(first.first[:HEAD_BYTES]) if isinstance(first.first, bytes) else None
        self._image = isinstance(first.first, bytes) and format_of(first.first[:16]) is not None

    def learn(self, found: Found) -> None:
        """Take in the feature of one more example."""
        self._count += 1
        self._ragged |= found.type != self._type or found.length != self._length
        if isinstance(found.first, int):
            self._low = found.first if self._low is None else min(self._low, found.first)
            self._high = found.first if self._high is None else max(self._high, found.first)

    def feature(self, samples: int) -> Feature:
        """What it turned out to be; one that some examples do not have is ragged."""
        if self._ragged or self._count != samples:
            return Feature(name=self._name, type="ragged")
        kind: Any = "image" if self._image and self._length == 1 else self._type
        shape = () if self._length == 1 else (self._length,)
        label = kind == "integer" and self._length == 1
        return Feature(
            name=self._name,
            type=kind,
            shape=shape,
            low=self._low if label else None,
            high=self._high if label else None,
        )


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC32C = _table()


def _masked(data: bytes) -> int:
    """TensorFlow's masked CRC-32C (Castagnoli)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC32C[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
