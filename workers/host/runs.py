"""The run folder of an attempt on this host: its files, its lock, and whether it is over."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from workers.contract.assignment import Assignment


def write_whole(path: Path, text: str) -> None:
    """Write under a temporary name, then rename, so that nobody reads half a file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)


class RunFolder:
    """`RUN` of docs/architecture.md.

    Adds the marks `begun` (a supervisor started the gang), `stored` (all that is to be kept is in the artifact store)
    and `settled` (ended and every byte acknowledged).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.assignment_file = path / "assignment.json"
        self.stop_file = path / "stop"
        self.pause_file = path / "pause"
        self.paused_file = path / "paused"
        self.save_file = path / "checkpoint-now"
        self.checkpoints = path / "checkpoints"
        self.resume = path / "resume"
        self.begun_file = path / "begun"
        self.stored_file = path / "stored"
        self.settled_file = path / "settled"
        self.shipped_file = path / "shipped.json"
        self._lock_file = path / "supervisor.lock"

    @property
    def attempt(self) -> int:
        return int(self.path.name)

    def assignment(self) -> Assignment:
        """Raises pydantic.ValidationError when it comes from a version that this host does not understand."""
        return Assignment.model_validate_json(self.assignment_file.read_bytes())

    def accept(self, assignment: dict[str, Any]) -> None:
        """Keep what launch() was given; the first one stays."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.assignment_file.exists():
            write_whole(self.assignment_file, json.dumps(assignment))

    def ask_to_stop(self) -> None:
        """Leave the mark that a running or a later supervisor honours."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.stop_file.touch()

    def ask_to_pause(self) -> None:
        """Leave the mark at which the engine saves a checkpoint and ends."""
        self.pause_file.touch()

    def ask_to_save(self) -> None:
        """Leave the mark at which the engine saves a checkpoint and goes on; it removes the mark."""
        self.save_file.touch()

    @property
    def launched(self) -> bool:
        return self.assignment_file.exists()

    @property
    def settled(self) -> bool:
        return self.settled_file.exists()

    @property
    def over(self) -> bool:
        """Whether nothing can be done for it any more: it is settled, and no file of it waits for the store."""
        return self.settled and (self.stored_file.exists() or not self.begun_file.exists())

    @property
    def alive(self) -> bool:
        """Whether a supervisor lives: asked of its lock, never of a recorded pid."""
        return self._held() is not None

    @property
    def supervisor_pid(self) -> int | None:
        """The living supervisor's pid."""
        return self._held() or None

    def _held(self) -> int | None:
        """None when nobody holds the lock, 0 when its holder has not yet written its pid."""
        try:
            with open(self._lock_file, "rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return int(file.read() or 0)
        except FileNotFoundError:
            pass
        return None

    @contextlib.contextmanager
    def lock(self, *, seconds: float = 0.5) -> Iterator[bool]:
        """Be the supervisor of this run; yields False when another lives.

        Tries for a while, since whoever asks whether one is alive holds the lock for an instant.
        """
        deadline = time.monotonic() + seconds
        with open(self._lock_file, "a+b") as file:
            while not _locked(file):
                if time.monotonic() > deadline:
                    yield False
                    return
                time.sleep(0.02)
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            yield True


def _locked(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def run_folders(runs: Path) -> list[RunFolder]:
    """Every attempt that has a folder here, oldest first."""
    if not runs.is_dir():
        return []
    return [
        RunFolder(path) for path in sorted((p for p in runs.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    ]
