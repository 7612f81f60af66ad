"""Keeps the Celery worker of this host up: it hands `launch` and `stop` to the run folders and holds nothing itself."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time

from workers.contract.wire import host_queue
from workers.host.settings import ROOT, HostSettings

RESTART_SECONDS = 1.0
STUCK_SECONDS = 6.0
STOP_SECONDS = 2.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None

log = logging.getLogger(__name__)


class CeleryWorker:
    """A child process, started again when it dies or when tasks lie in its queue for seconds.

    After Redis was away for long, Celery takes up to half a minute to try again, and some versions never take up their
    queue again; its tasks take milliseconds, so one that waits for seconds means that nobody is listening.
    """

    def __init__(self, settings: HostSettings) -> None:
        self._settings = settings
        self._child: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._waiting_since: float | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    def tend(self) -> None:
        """Start it when it does not run. To be called from the main thread, every second or two."""
        if self._child is not None and self._child.poll() is None:
            return
        if time.monotonic() - self._started < RESTART_SECONDS:
            return
        if self._child is not None:
            log.warning("the Celery worker ended (%s), starting it again", self._child.returncode)
        self._start()

    def hear_queue(self, length: int) -> None:
        """Told how many tasks wait in the queue."""
        now = time.monotonic()
        if length == 0 or now - self._started < STUCK_SECONDS:
            self._waiting_since = None
            return
        self._waiting_since = self._waiting_since or now
        if now - self._waiting_since >= STUCK_SECONDS:
            log.warning("%s tasks wait and the Celery worker does not take them, starting it again", length)
            self.stop()
            self._start()

    def terminate(self) -> None:
        """Ask it to end, without waiting."""
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()

    def stop(self) -> None:
        """TERM, then KILL."""
        if self._child is None or self._child.poll() is not None:
            return
        self._child.terminate()
        try:
            self._child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _start(self) -> None:
        name = self._settings.lockstep_host
        # The solo pool: tasks are short, and a pool of children would double what there is to keep alive.
        command = [
            *(
                sys.executable,
                "-m",
                "celery",
                "-q",
                "-A",
                "workers.celery",
                "worker",
                "-Q",
                host_queue(name),
                "-P",
                "solo",
            ),
            *("--concurrency=1", "--prefetch-multiplier=1", "-n", f"lockstep@{name}", "--loglevel", "WARNING"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ]
        self._started, self._waiting_since = time.monotonic(), None
        self._child = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509  the daemon has one thread
        )


def _end_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == 1:
            os._exit(1)
