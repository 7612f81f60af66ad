"""The control loop: place, send, reap, release; woken by Redis, or looking by itself every half second."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from webapp.cluster import reaper
from webapp.cluster.broker import BrokerAway
from webapp.cluster.dispatch import dispatch
from webapp.cluster.retention import Retention
from webapp.cluster.scheduler import schedule
from webapp.jobs.notices import client
from workers.contract.wire import WAKE

PAUSE_SECONDS = 0.5
LONGEST_REST = 10.0

CHORES: list[Callable[[], None]] = []
"""What other apps want done each turn; an app adds its own when it is ready. Each looks after its own failures."""

log = logging.getLogger(__name__)


class Control:
    """Runs until `stop` is set. The database or Redis may go and come back meanwhile."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._retention = Retention()
        self._redis_rest = Rest("Redis is away", "Redis is back")
        self._database_rest = Rest("the database failed", "the database answers again")

    def run(self) -> None:
        """Turn after turn; the pause between them ends early when somebody pushes to WAKE."""
        while not self.stop.is_set():
            try:
                self.turn()
                self._database_rest.over()
            except (DatabaseError, InterfaceError) as error:
                connection.close()
                self.stop.wait(self._database_rest.failed(error))
                continue
            self._pause()

    def turn(self) -> None:
        """Everything once. What Redis is needed for is left for later while it is away."""
        reaper.reap()
        reaper.release()
        schedule()
        self._retention.tend()
        for chore in CHORES:
            chore()
        if self._redis_rest.resting:
            return
        try:
            dispatch()
            reaper.void_ended()
            self._redis_rest.over()
        except BrokerAway as error:
            self._redis_rest.failed(error)

    def _pause(self) -> None:
        if self._redis_rest.resting:
            self.stop.wait(PAUSE_SECONDS)
            return
        try:
            client(settings.REDIS_URL).blpop([WAKE], timeout=PAUSE_SECONDS)
        except redis.RedisError as error:
            self._redis_rest.failed(error)
            self.stop.wait(PAUSE_SECONDS)


class Rest:
    """How long to leave something alone that fails: twice as long each time; one log line when it goes and comes."""

    def __init__(self, gone: str, back: str) -> None:
        self._gone, self._back = gone, back
        self._seconds = 0.0
        self._until = 0.0

    @property
    def resting(self) -> bool:
        return time.monotonic() < self._until

    def failed(self, error: Exception) -> float:
        """Seconds to rest now."""
        if not self._seconds:
            log.warning("%s: %s", self._gone, error)
        self._seconds = min(LONGEST_REST, self._seconds * 2 or PAUSE_SECONDS)
        self._until = time.monotonic() + self._seconds
        return self._seconds

    def over(self) -> None:
        if self._seconds:
            log.info("%s", self._back)
        self._seconds = 0.0
