"""The supervisor's own events, `events/supervisor@<host>.jsonl`."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from workers.contract.events import Ended, Event, Exited, Failed, NotStored, Spawned, Stored, parse_event, to_line
from workers.contract.kinds import WORK
from workers.gang import ProcessExit
from workers.host.verdict import Verdict

Kind = Literal["checkpoint", "artifact"]


SPARE_BYTES = 128 * 1024
FULL = {errno.ENOSPC, errno.EDQUOT}


class Journal:
    """Appends whole lines; survives a predecessor that died in the middle of one, and a disk that is full.

    `full` is set once the disk was.
    """

    def __init__(self, run: Path, host: str) -> None:
        self.name = f"supervisor@{host}"
        self.path = run / "events" / f"{self.name}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.full = False
        self._spare = run / "spare"
        _end_last_line(self.path)

    def reserve(self) -> None:
        """Hold room on the disk for the words that tell how the run ended. Raises OSError."""
        self._spare.write_bytes(bytes(SPARE_BYTES))

    def spawned(self, *, target: str, host: str, pid: int, devices: tuple[str, ...]) -> None:
        self._write(Spawned(time=time.time(), process=self.name, target=target, host=host, pid=pid, devices=devices))

    def exited(self, end: ProcessExit) -> None:
        self._write(Exited(time=time.time(), process=self.name, target=end.name, code=end.code, signal=end.signal))

    def stored(self, *, kind: Kind, name: str, size: int) -> None:
        self._write(Stored(time=time.time(), process=self.name, kind=kind, name=name, bytes=size))

    def not_stored(self, *, kind: Kind, name: str, path: Path, cause: str) -> None:
        host = self.name.partition("@")[2]
        told = NotStored(
            time=time.time(), process=self.name, kind=kind, name=name, host=host, path=str(path), cause=cause
        )
        self._write(told)

    def ended(self, verdict: Verdict) -> None:
        """The last word; a failure is then told to be the full disk's where that was."""
        cause = verdict.cause
        if self.full and verdict.outcome == "failed":
            cause = f"{cause} The disk that holds {self._spare.parent} is full: make room there, or set LOCKSTEP_RUNS."
        self._write(
            Ended(
                time=time.time() if verdict.time is None else verdict.time,
                process=self.name,
                outcome=verdict.outcome,
                cause=cause,
                target=verdict.target,
                log_tail=verdict.log_tail,
            )
        )
        self._spare.unlink(missing_ok=True)

    def read(self) -> list[Event]:
        """What was written so far, by predecessors too."""
        return list(events_of(self.path))

    def _write(self, event: Event) -> None:
        try:
            _append(self.path, to_line(event))
        except OSError as error:
            if error.errno not in FULL or not self._spare.exists():
                raise
            self._spare.unlink()
            self.full = True
            _append(self.path, to_line(event))


def _append(path: Path, line: bytes) -> None:
    """All of it or nothing: a disk that fills up takes a part of a line without a word."""
    with open(path, "ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        if file.write(line) < len(line):
            file.truncate(before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def events_of(path: Path) -> Iterator[Event]:
    """Events of a file; lines that are none (a process died while writing) are passed over."""
    if not path.exists():
        return
    with open(path, "rb") as file:
        for line in file:
            try:
                yield parse_event(line)
            except ValidationError:
                continue


def last_failure(run: Path, process: str, window: int = 1 << 20) -> Failed | None:
    """The newest Failed event among the last `window` bytes of a process's events."""
    path = run / "events" / f"{process}.jsonl"
    found = None
    for line in tail_bytes(path, window).splitlines():
        if b'"failed"' in line:
            try:
                event = parse_event(line)
            except ValidationError:
                continue
            found = event if isinstance(event, Failed) else found
    return found


def was_at_work(run: Path, process: str, window: int = 1 << 16) -> bool:
    """Whether a process has told the phase of its job's work, among the first `window` bytes of its events."""
    try:
        with open(run / "events" / f"{process}.jsonl", "rb") as file:
            lines = file.read(window).splitlines()
    except FileNotFoundError:
        return False
    told = [f'"phase":"{phase}"'.encode() for phase in WORK.values()]
    return any(phase in line.replace(b" ", b"") for line in lines for phase in told)


def tail_bytes(path: Path, window: int) -> bytes:
    """At most the last `window` bytes of a file, empty when there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - window))
            return file.read()
    except FileNotFoundError:
        return b""


def _end_last_line(path: Path) -> None:
    if tail_bytes(path, 1) not in {b"", b"\n"}:
        with open(path, "ab", buffering=0) as file:
            file.write(b"\n")
