"""The training host's daemon: says hello every two seconds and keeps everything else alive."""

from __future__ import annotations

import fcntl
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import redis

from workers.contract.wire import BEAT_SECONDS, EVENTS, Hello, host_queue
from workers.host.celery_worker import CeleryWorker
from workers.host.inventory import Surveyor
from workers.host.keeping import Keeper
from workers.host.redis_client import connect
from workers.host.selftesting import SelfTesting
from workers.host.settings import HostSettings

log = logging.getLogger(__name__)


class AlreadyRunning(RuntimeError):
    """Another daemon keeps this host's run folders."""


class Daemon:
    """Runs until SIGTERM or SIGINT; running jobs go on without it, unless LOCKSTEP_END_WITH_HOST is set."""

    def __init__(self, settings: HostSettings) -> None:
        self._settings = settings
        self._surveyor = Surveyor(settings)
        self._celery = CeleryWorker(settings)
        self._keeper = Keeper(settings.lockstep_runs, settings.lockstep_keep_runs_days)
        self._selftest = SelfTesting(settings)
        self._redis = connect(settings.redis_url)
        self._ended = threading.Event()
        self._connected = True

    def run(self) -> None:
        """Raises AlreadyRunning."""
        self._settings.export()
        self._settings.lockstep_runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        with self._alone():
            log.info("host %s keeps %s", self._settings.lockstep_host, self._settings.lockstep_runs)
            while not self._ended.is_set():
                self._celery.tend()
                self._keeper.tend()
                self._greet()
                self._ended.wait(BEAT_SECONDS)
            self._celery.terminate()
            self._selftest.end()
            if self._settings.lockstep_end_with_host:
                self._keeper.end_all()
            self._celery.stop()

    def _greet(self) -> None:
        inventory = self._surveyor.survey()
        self._selftest.tend(busy=bool(inventory.attempts))
        news = self._selftest.news()
        hello = Hello(inventory.model_copy(update={"selftest": news}).model_dump_json())
        try:
            self._redis.xadd(EVENTS, hello.fields())  # type: ignore[arg-type]
            waiting: int = self._redis.llen(host_queue(self._settings.lockstep_host))
        except (redis.RedisError, OSError) as error:
            if self._connected:
                log.warning("Redis cannot be reached (%s), trying for ever", error)
            self._connected = False
            return
        if not self._connected:
            log.info("Redis is back")
        self._connected = True
        self._selftest.told(news)
        self._celery.hear_queue(waiting)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        path = self._settings.lockstep_runs / "host.lock"
        with open(path, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AlreadyRunning(
                    f"another host daemon keeps {path.parent}: end it, or set LOCKSTEP_RUNS and LOCKSTEP_HOST"
                ) from None
            yield

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._ended.set()
