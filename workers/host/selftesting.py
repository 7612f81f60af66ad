"""Lets the self-test run in the background while the host is idle, and says what it found.

The test is a child process of the lowest priority. It ends when a job comes and goes on after it: what it found is in a
file, LOCKSTEP_RUNS/selftest/<key>.json, whole after every case.
"""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import time
from pathlib import Path

from pydantic import ValidationError

from workers.contract.inventory import SelfTest
from workers.contract.selftest import is_complete
from workers.host.inventory import gpus, versions
from workers.host.settings import ROOT, HostSettings
from workers.host.tpus import tpus

RUNNER = "workers.training.selftest"
RETRY_SECONDS = 900.0
"""After a test that could not go on."""
TELL_SECONDS = 60.0
"""The results are told when they change, and so often for a control plane that has lost them."""
END_SECONDS = 3.0

log = logging.getLogger(__name__)


def key() -> str:
    """What results depend on: versions, and the kind and number of devices."""
    known = versions()
    parts = [f"{name} {known.get(name, 'unknown')}" for name in ("tensorflow", "keras", "lockstep")]
    counts = [f"{len(found)} {name}" for name, found in (("gpu", gpus()), ("tpu", tpus())) if found]
    return ", ".join([*parts, *(counts or ["cpu"])])


def results_file(runs: Path, of: str) -> Path:
    """Where the results of a key are kept."""
    return runs / "selftest" / f"{re.sub(r'[^A-Za-z0-9.]+', '-', of)}.json"


def read(file: Path, of: str) -> SelfTest | None:
    """The results there; None without any of this key."""
    try:
        found = SelfTest.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
    return found if found.key == of else None


def command(file: Path, of: str, *more: str) -> list[str]:
    """What runs the test."""
    return [sys.executable, "-m", RUNNER, str(file), "--key", of, *more]


class SelfTesting:
    """Called every two seconds by the host daemon."""

    def __init__(self, settings: HostSettings) -> None:
        self._enabled = settings.lockstep_selftest == "auto"
        self._quiet = settings.lockstep_selftest_quiet
        self._key = key()
        self._file = results_file(settings.lockstep_runs, self._key)
        self._child: subprocess.Popen[bytes] | None = None
        self._not_before = time.monotonic() + self._quiet
        self._told: SelfTest | None = None
        self._told_at = 0.0

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    def tend(self, *, busy: bool) -> None:
        """Start it after a while without jobs, end it when one comes."""
        if busy:
            self._not_before = time.monotonic() + self._quiet
            if self._child is not None and self._child.poll() is None:
                log.info("the self-test makes way for a job")
                self.end()
            return
        if self._child is not None and self._child.poll() is not None:
            self._hear_end(self._child.returncode)
        if self._enabled and self._child is None and time.monotonic() >= self._not_before and not self._complete():
            self._start()

    def news(self) -> SelfTest | None:
        """What the next hello should carry: the results when they are new to the control plane, or long not told.

        None yet are told as well: the control plane forgets what other versions showed here.
        """
        found = read(self._file, self._key) or SelfTest(key=self._key)
        due = time.monotonic() - self._told_at >= TELL_SECONDS
        return found if found != self._told or due else None

    def told(self, news: SelfTest | None) -> None:
        """A hello with these results has left."""
        if news is not None:
            self._told, self._told_at = news, time.monotonic()

    def end(self) -> None:
        """End it, if it runs; returns when it is gone."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()  # its processes end with it
            self._child.wait()
        self._child = None

    def _start(self) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        log.info("the host is idle: the self-test begins or goes on")
        with open(self._file.with_suffix(".log"), "ab") as output:
            self._child = subprocess.Popen(
                command(self._file, self._key, "--background"),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def _hear_end(self, code: int) -> None:
        self._child = None
        if code:
            log.warning("the self-test ended with %s, see %s", code, self._file.with_suffix(".log"))
            self._not_before = time.monotonic() + RETRY_SECONDS

    def _complete(self) -> bool:
        found = read(self._file, self._key)
        return found is not None and is_complete(found)
