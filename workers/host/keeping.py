"""Looks after the run folders: adopts what lost its supervisor, ends what ends with the host, removes what is old."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

from workers.contract.kinds import PREDICTIONS
from workers.host import library
from workers.host.launching import supervise
from workers.host.runs import RunFolder, run_folders

ADOPT_SECONDS = 5.0
STOP_MARK_SECONDS = 24 * 3600.0
END_SECONDS = 4.0
SWEEP_SECONDS = 3600.0
RESULTS = {"model.keras", "saved_model.zip", PREDICTIONS}
KEPT = RESULTS | {"settled", "stored"}
UNSTORED = {"assignment.json", "begun", "checkpoints", "events", "shipped.json"}
"""What it takes to put it into the store later, and to tell so."""

log = logging.getLogger(__name__)


class Keeper:
    """Called every few seconds by the host daemon."""

    def __init__(self, runs: Path, keep_days: float) -> None:
        self._runs = runs
        self._keep_seconds = keep_days * 86_400
        self._adopted: dict[int, float] = {}
        self._swept = -SWEEP_SECONDS

    def tend(self) -> None:
        """Look at every run folder once."""
        for run in run_folders(self._runs):
            if run.settled:
                self._tidy(run)
            elif run.launched:
                self._adopt(run)
            elif _age(run.stop_file) > STOP_MARK_SECONDS:
                shutil.rmtree(run.path)
        if time.monotonic() - self._swept > SWEEP_SECONDS:
            self._swept = time.monotonic()
            library.sweep(self._runs / "library")

    def end_all(self, seconds: float = END_SECONDS) -> None:
        """TERM to every supervisor here: each ends its gang and writes that the host was shut down."""
        deadline = time.monotonic() + seconds
        asked: set[int] = set()
        while time.monotonic() < deadline:
            living = [run for run in run_folders(self._runs) if run.alive]
            if not living:
                return
            for pid in {run.supervisor_pid for run in living} - asked - {None}:
                assert pid is not None
                asked.add(pid)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            time.sleep(0.05)

    def _adopt(self, run: RunFolder) -> None:
        now = time.monotonic()
        if run.alive or now - self._adopted.get(run.attempt, -ADOPT_SECONDS) < ADOPT_SECONDS:
            return
        if not run.begun_file.exists() and _age(run.assignment_file) < ADOPT_SECONDS:
            return  # launched this very moment
        self._adopted[run.attempt] = now
        log.warning("attempt %s has no supervisor, starting one", run.attempt)
        supervise(run)

    def _tidy(self, run: RunFolder) -> None:
        if _age(run.settled_file) < self._keep_seconds:
            return
        names = set(os.listdir(run.path))
        # Checkpoints that the store has need no second home; others lie nowhere else.
        kept, worth = (KEPT, RESULTS) if run.over else (KEPT | UNSTORED, RESULTS | {run.checkpoints.name})
        if not names & worth and self._keep_seconds:
            shutil.rmtree(run.path)
            return
        for name in names - kept:
            path = run.path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _age(path: Path) -> float:
    """Seconds since it was written; 0 when it is not there."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
