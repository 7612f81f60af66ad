"""Starts supervisors: the one place where that is done, for new attempts and for those whose supervisor died."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

from workers.host.runs import RunFolder
from workers.host.settings import ROOT

log = logging.getLogger(__name__)
_started: list[subprocess.Popen[bytes]] = []


def launch(runs: Path, assignment: dict[str, Any]) -> bool:
    """Keep the assignment and start its supervisor; False when the attempt was launched before and needs none.

    Raises ValueError when the assignment names no attempt. Whatever else is wrong with it the supervisor tells.
    """
    run = RunFolder(runs / str(_number(assignment.get("attempt"))))
    if run.settled:
        return False
    run.accept(assignment)
    return supervise(run)


def stop(runs: Path, attempt: int) -> None:
    """Ask the attempt to stop; one that was not launched yet will end as soon as it is.

    Raises ValueError when `attempt` is no number of an attempt.
    """
    run = RunFolder(runs / str(_number(attempt)))
    if not run.settled:
        run.ask_to_stop()


def store(runs: Path, attempt: int) -> bool:
    """Try once more to put into the artifact store what it could not take when the attempt ended.

    Raises ValueError when `attempt` is no number of an attempt.
    """
    run = RunFolder(runs / str(_number(attempt)))
    return run.settled and not run.over and supervise(run)


def supervise(run: RunFolder) -> bool:
    """Start a supervisor in a session of its own unless one lives; two at once are harmless, the lock lets one in."""
    _started[:] = [process for process in _started if process.poll() is None]
    if run.alive:
        return False
    with open(run.path / "supervisor.log", "ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers.host.supervisor", str(run.path)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    _started.append(process)
    return True


def _number(attempt: object) -> int:
    if isinstance(attempt, bool) or not isinstance(attempt, int) or attempt < 1:
        raise ValueError(f"attempt: must be the number of an attempt, got {attempt!r}")
    return attempt
