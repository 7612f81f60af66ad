"""Tells whoever listens that a job changed, and the control process that there is something to do.

Both go to Redis after the commit and are hints only: while Redis is away they are dropped with a log line, the pages
heal by asking again and the control process looks by itself every half second.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterable

import redis
from django.conf import settings
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

from workers.contract.wire import WAKE

LIVE = "lockstep:live"
LIVE_LENGTH = 10_000
REST_SECONDS = 2.0
"""After a failure nothing is tried for so long, so that a Redis that is away does not slow every request down."""

log = logging.getLogger(__name__)
_resting_until: dict[str, float] = {}


def changed(job_ids: Iterable[int]) -> None:
    """After the commit, put each job as `{kind: job, job, team}` on the live stream."""
    ids = sorted(set(job_ids))
    if ids:
        transaction.on_commit(lambda: _send(functools.partial(_append, ids)), robust=True)


def wake_control() -> None:
    """After the commit, let the control process look at once."""
    transaction.on_commit(lambda: _send(_wake), robust=True)


@functools.cache
def client(url: str) -> redis.Redis:
    """A client that gives up quickly instead of holding a request or the control loop."""
    return redis.Redis.from_url(url, socket_connect_timeout=0.5, socket_timeout=2.0, retry=Retry(NoBackoff(), 0))


def _append(ids: list[int], connection: redis.Redis) -> None:
    from webapp.jobs.models import Job

    pipe = connection.pipeline(transaction=False)
    for job, team in Job.objects.filter(pk__in=ids).order_by("id").values_list("pk", "team_id"):
        pipe.xadd(LIVE, {"kind": "job", "job": job, "team": team}, maxlen=LIVE_LENGTH, approximate=True)
    pipe.execute()


def _wake(connection: redis.Redis) -> None:
    pipe = connection.pipeline(transaction=False)
    pipe.lpush(WAKE, "1")
    pipe.ltrim(WAKE, 0, 9)
    pipe.execute()


def _send(action: Callable[[redis.Redis], None]) -> None:
    url = settings.REDIS_URL
    if time.monotonic() < _resting_until.get(url, 0.0):
        return
    try:
        action(client(url))
    except redis.RedisError as error:
        _resting_until[url] = time.monotonic() + REST_SECONDS
        log.warning("Redis is away, so a change of a job was not told: %s", error)
