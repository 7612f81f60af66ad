"""The files of one attempt as the shipper sees them: what has been sent of each, and what has been acknowledged."""

from __future__ import annotations

import collections
import dataclasses
import os
from pathlib import Path
from typing import NamedTuple

CHUNK_BYTES = 256 * 1024
LONGEST_LINE = 8 * 1024 * 1024
PARTIAL_SECONDS = 1.0


class Sent(NamedTuple):
    """A range on its way: where it ends, and its entry in the stream."""

    end: int
    entry: bytes


@dataclasses.dataclass
class Source:
    """One growing file. `acked` <= `sent` <= its size; all in bytes."""

    name: str
    path: Path
    lines_only: bool
    acked: int = 0
    sent: int = 0
    flying: collections.deque[Sent] = dataclasses.field(default_factory=collections.deque)
    grew: float = 0.0
    patience: float = 0.0
    """Monotonic time of the last progress, and the seconds to wait beyond it before sending again."""
    _partial: tuple[int, float] = (0, 0.0)

    @property
    def in_flight(self) -> int:
        return self.sent - self.acked

    def size(self) -> int:
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0

    def next_piece(self, now: float, *, final: bool) -> bytes:
        """The bytes to send next, at `sent`; empty when there are none yet.

        Events go as whole lines. Logs go as whole lines too while they come quickly; an unfinished line goes after a
        second, or when `final`. A UTF-8 character is never split, unless the file ends inside one.
        """
        if self.size() <= self.sent:
            return b""
        data = self._read(CHUNK_BYTES)
        lines = data[: data.rfind(b"\n") + 1]
        if lines:
            return lines
        if self.lines_only:
            return self._long_line() if len(data) == CHUNK_BYTES else b""
        if len(data) < CHUNK_BYTES and not final and not self._waited(now):
            return b""
        return data if final and len(data) < CHUNK_BYTES else whole_characters(data)

    def _waited(self, now: float) -> bool:
        """Whether an unfinished line at this place has been there for a second."""
        place, since = self._partial
        if place != self.sent or not since:
            self._partial = (self.sent, now)
            return False
        return now - since >= PARTIAL_SECONDS

    def _long_line(self) -> bytes:
        """One event longer than a chunk (a huge traceback) goes in one piece all the same."""
        data = self._read(LONGEST_LINE)
        end = data.find(b"\n") + 1
        return data[:end] if end else data if len(data) == LONGEST_LINE else b""

    def _read(self, most: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(self.sent)
            return file.read(most)

    def sent_piece(self, length: int, entry: bytes, now: float) -> None:
        """`length` bytes at `sent` are on their way."""
        if not self.in_flight:
            self.grew = now
        self.sent += length
        self.flying.append(Sent(self.sent, entry))

    def acknowledge(self, committed: int, now: float) -> bool:
        """Take over what the control plane has committed; True when that is news.

        Less than before means that its database was put back: then those bytes are wanted again.
        """
        if committed == self.acked:
            return False
        if committed < self.acked:
            self.rewind(committed, now)
        self.acked = committed
        self.sent = max(self.sent, committed)
        while self.flying and self.flying[0].end <= committed:
            self.flying.popleft()
        self.grew, self.patience = now, 0.0
        return True

    def rewind(self, offset: int, now: float) -> None:
        """Send again from `offset` on."""
        self.sent = offset
        self.flying.clear()
        self.grew = now


def whole_characters(data: bytes) -> bytes:
    """`data` without the beginning of a UTF-8 character at its end; all of it when that is no UTF-8."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        width = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-back] if width > back and back < len(data) else data
    return data


def discover(run: Path, known: dict[str, Source]) -> None:
    """Add sources for files that have appeared: `events/worker-0`, `logs/worker-0.stderr`."""
    for folder, suffixes in (("events", {".jsonl"}), ("logs", {".stdout", ".stderr"})):
        try:
            names = os.listdir(run / folder)
        except FileNotFoundError:
            continue
        for file in names:
            stem, suffix = os.path.splitext(file)
            name = f"events/{stem}" if folder == "events" else f"logs/{file}"
            if suffix in suffixes and name not in known:
                known[name] = Source(name, run / folder / file, lines_only=folder == "events")
