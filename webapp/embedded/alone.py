"""One demo a home: two would share its database, its Redis socket and its training host, and damage one another."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

LEFTOVER_SECONDS = 15.0


class AlreadyRunning(RuntimeError):
    """Said to the user in this one sentence."""


@contextmanager
def alone(home: Path, *, leftover_seconds: float = LEFTOVER_SECONDS) -> Iterator[int]:
    """Be the only demo of `home`. Yields a file descriptor that each of its processes must inherit.

    The demo's own lock ends with it, however it ends; the inherited one with the last of its processes, so that a demo
    that was killed is not started again over processes that are still ending. Raises AlreadyRunning.
    """
    home.mkdir(parents=True, exist_ok=True)
    with open(home / "demo.lock", "ab") as demo, open(home / "household.lock", "ab") as household:
        if not _locked(demo, 0.0):
            raise AlreadyRunning(
                f"A demo runs already in {home}: open its page, end it with Ctrl-C, or set LOCKSTEP_HOME to another."
            )
        if not _locked(household, leftover_seconds):
            raise AlreadyRunning(
                f"Processes of an earlier demo in {home} have not ended: end them (fuser {household.name} lists them)."
            )
        yield household.fileno()


def _locked(file: BinaryIO, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True
