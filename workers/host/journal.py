"""The supervisor's own events, `events/supervisor@<host>.jsonl`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from workers.contract.events import Ended, Event, Exited, Failed, NotStored, Spawned, Stored, parse_event, to_line
from workers.gang import ProcessExit
from workers.host.verdict import Verdict

Kind = Literal["checkpoint", "artifact"]


class Journal:
    """Appends whole lines; survives a predecessor that died in the middle of one."""

    def __init__(self, run: Path, host: str) -> None:
        self.name = f"supervisor@{host}"
        self.path = run / "events" / f"{self.name}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _end_last_line(self.path)

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
        self._write(
            Ended(
                time=time.time() if verdict.time is None else verdict.time,
                process=self.name,
                outcome=verdict.outcome,
                cause=verdict.cause,
                target=verdict.target,
                log_tail=verdict.log_tail,
            )
        )

    def read(self) -> list[Event]:
        """What was written so far, by predecessors too."""
        return list(events_of(self.path))

    def _write(self, event: Event) -> None:
        with open(self.path, "ab", buffering=0) as file:
            file.write(to_line(event))


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


def has_trained(run: Path, process: str, window: int = 1 << 16) -> bool:
    """Whether a process has told the phase `training`, among the first `window` bytes of its events."""
    try:
        with open(run / "events" / f"{process}.jsonl", "rb") as file:
            lines = file.read(window).splitlines()
    except FileNotFoundError:
        return False
    return any(b'"phase":"training"' in line.replace(b" ", b"") for line in lines)


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
