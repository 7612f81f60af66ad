"""Finds every living process of a run, children of children included, by a mark in its environment.

A recorded pid may be somebody else's by the time it is looked at, and a child may have left its parent's session; the
mark is inherited and names the run folder, so it can do neither harm nor miss.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

MARK = "LOCKSTEP_RUN"
_PROC = Path("/proc")


def leftovers(run: Path) -> list[int]:
    """Pids of living processes that belong to `run`; empty where there is no /proc."""
    wanted = f"{MARK}={run.resolve()}".encode()
    return [pid for pid in _pids() if pid != os.getpid() and _bears(pid, wanted)]


def kill_leftovers(run: Path, *, seconds: float = 2.0) -> list[int]:
    """SIGKILL every process of `run` until none is left or `seconds` have passed; returns those that were killed."""
    killed: set[int] = set()
    deadline = time.monotonic() + seconds
    while found := leftovers(run):
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed.update(found)
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return sorted(killed)


def _pids() -> list[int]:
    if not _PROC.is_dir():
        return []
    return [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]


def _bears(pid: int, wanted: bytes) -> bool:
    # The environment of a zombie is empty, so what waits to be reaped does not count as living.
    try:
        return wanted in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
