"""Tells hosts to launch and to stop, again and again until their supervisors are heard: both orders are idempotent.

A stop goes two ways: by Celery, for an attempt that has not begun on its host, and as the attempt's order in Redis,
which a living supervisor reads itself, whatever has become of the Celery worker. Pauses and requests for a checkpoint
go the second way alone: who has not begun has nothing to save.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal

import redis
from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from kombu.connection import Connection

from webapp.cluster import broker
from webapp.cluster.clock import database_now
from webapp.jobs.models import ACTIVE, Attempt, State, Supervisor
from webapp.jobs.notices import client
from workers.contract.wire import COMMITTED_TTL, ORDER, SAVE, attempt_key, host_queue

LAUNCH_AGAIN = timedelta(seconds=5)
STOP_AGAIN = timedelta(seconds=3)
STORE_AGAIN, STORE_AT_LAST = timedelta(seconds=30), timedelta(hours=1)
QUEUE_LIMIT = 4
"""A host whose queue holds so much is not reading it; more copies would not make it."""
LAUNCHING = (State.STARTING, State.RUNNING, State.PAUSING)
"""A pause before the launch is heard needs the launch first: it ends with a checkpoint."""

log = logging.getLogger(__name__)


def dispatch() -> int:
    """Send what is due; how many orders were sent. Raises broker.BrokerAway."""
    _order_pauses()
    _order_saves()
    launches, stops, stores = list(_due_launches()), list(_due_stops()), _due_stores()
    if not launches and not stops and not stores:
        return 0
    order({supervisor.attempt_id for supervisor in stops}, "stop")
    with broker.connect() as connection:
        return (
            _send(connection, broker.LAUNCH, launches, "sent")
            + _send(connection, broker.STOP, stops, "stop_sent")
            + _send(connection, broker.STORE, stores, "sent")
        )


def _send(connection: Connection, task: str, supervisors: list[Supervisor], when: str) -> int:
    """Put the task on each one's host's queue and note in the field `when` that it was; how many."""
    due = _not_congested(supervisors)
    for supervisor in due:
        about = supervisor.attempt.assignment if task == broker.LAUNCH else supervisor.attempt_id
        broker.send(connection, task, host=supervisor.host, args=[about])
        Supervisor.objects.filter(pk=supervisor.pk).update(**{when: database_now()})
    return len(due)


def order(attempts: Iterable[int], what: Literal["pause", "stop", "void"]) -> None:
    """Leave an order for the supervisors of attempts: `pause` to save a checkpoint and end, `stop` to end, `void` that
    the attempt was ended without them.

    Raises broker.BrokerAway.
    """
    _leave(dict.fromkeys(attempts, (ORDER, what)))


def _order_pauses() -> None:
    again = Q(pause_sent__isnull=True) | Q(pause_sent__lt=database_now() - STOP_AGAIN)
    due = list(_living().filter(again, attempt__job__state=State.PAUSING))
    order({supervisor.attempt_id for supervisor in due}, "pause")
    Supervisor.objects.filter(pk__in=[supervisor.pk for supervisor in due]).update(pause_sent=database_now())


def _order_saves() -> None:
    """The time of the request is its name: told again until the checkpoint is there, it stays one request."""
    asked = _living().filter(attempt__job__state=State.RUNNING, attempt__job__save_requested__isnull=False)
    rows = asked.values_list("attempt", "attempt__job__save_requested")
    _leave({attempt: (SAVE, str(requested)) for attempt, requested in rows})


def _leave(fields: Mapping[int, tuple[str, str]]) -> None:
    """Set one field of the hash of each attempt."""
    if not fields:
        return
    pipe = client(settings.REDIS_URL).pipeline(transaction=False)
    for attempt, (name, value) in fields.items():
        pipe.hset(attempt_key(attempt), name, value)
        pipe.expire(attempt_key(attempt), COMMITTED_TTL)
    try:
        pipe.execute()
    except redis.RedisError as error:
        raise broker.BrokerAway(str(error)) from error


def _due_launches() -> QuerySet[Supervisor]:
    again = Q(sent__isnull=True) | Q(sent__lt=database_now() - LAUNCH_AGAIN)
    return _living().filter(again, heard__isnull=True, attempt__job__state__in=LAUNCHING)


def _due_stops() -> QuerySet[Supervisor]:
    """Of jobs that are to stop, and of gangs of which one host is done and not well."""
    broken = Supervisor.objects.filter(attempt=OuterRef("attempt"), outcome__in=("failed", "cancelled"))
    stopping = Q(attempt__job__state=State.STOPPING) | Exists(broken)
    again = Q(stop_sent__isnull=True) | Q(stop_sent__lt=database_now() - STOP_AGAIN)
    return _living().filter(stopping, again)


def _due_stores() -> list[Supervisor]:
    """Of jobs at rest whose files lie on a host, since the artifact store could not take them: ever more rarely.

    Of their newest attempt only: a later one has taken the place of what it left.
    """
    later = Attempt.objects.filter(job=OuterRef("attempt__job"), pk__gt=OuterRef("attempt"))
    resting = Supervisor.objects.filter(~Exists(later), holds=True, attempt__ended__isnull=False)
    found = resting.exclude(attempt__job__state__in=ACTIVE).select_related("attempt").defer("attempt__assignment")
    now = database_now()
    return [each for each in found.order_by("pk") if each.sent is None or now - each.sent > _patience(each, now)]


def _patience(supervisor: Supervisor, now: datetime) -> timedelta:
    waited = now - (supervisor.attempt.ended or now)
    return min(max(STORE_AGAIN, waited / 8), STORE_AT_LAST)


def _living() -> QuerySet[Supervisor]:
    living = Supervisor.objects.filter(attempt__ended__isnull=True, outcome="")
    return living.select_related("attempt").order_by("attempt_id", "host")


def _not_congested(supervisors: list[Supervisor]) -> list[Supervisor]:
    connection = client(settings.REDIS_URL)
    depths: dict[str, int] = {}
    for host in {supervisor.host for supervisor in supervisors}:
        depths[host] = int(connection.llen(host_queue(host)))
    return [s for s in supervisors if s.sent is None or depths[s.host] < QUEUE_LIMIT]
