"""Celery, used to send only: tasks by name to the queue of a host. No Celery worker runs in this half."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from celery import Celery
from django.conf import settings
from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from workers.contract.wire import host_queue

LAUNCH, STOP, INSPECT = "workers.tasks.launch", "workers.tasks.stop", "workers.tasks.inspect"
STORE = "workers.tasks.store"
TIMEOUTS = {"socket_connect_timeout": 1.0, "socket_timeout": 2.0, "max_retries": 0}


class BrokerAway(Exception):
    """Redis could not be reached; what was to be sent is sent at a later turn."""


def broker_url(redis_url: str) -> str:
    """REDIS_URL as Celery writes it: `unix:///p?db=1` becomes `redis+socket:///p?virtual_host=1`."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    return f"redis+socket://{parts.path}?virtual_host={dict(parse_qsl(parts.query)).get('db', '0')}"


@contextmanager
def connect() -> Iterator[Connection]:
    """A connection for the sends of one turn; fresh each time, so that a Redis that came back is simply found again.

    Raises BrokerAway within two seconds.
    """
    app = _app(broker_url(settings.REDIS_URL))
    try:
        with app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=2, interval_start=0)
            yield connection
    except (OperationalError, RedisError, OSError) as error:
        raise BrokerAway(str(error)) from error


def send(connection: Connection, task: str, *, host: str, args: list[Any]) -> None:
    """Put one task on a host's queue. The anonymous exchange needs no binding, which a restarted Redis would lack."""
    name = host_queue(host)
    queue = Queue(name, Exchange(""), routing_key=name)  # type: ignore[no-untyped-call]
    _app(broker_url(settings.REDIS_URL)).send_task(
        task, args=args, queue=queue, connection=connection, retry=False, ignore_result=True
    )


@functools.cache
def _app(url: str) -> Celery:
    app = Celery("lockstep-control", broker=url, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        result_backend=None,
        broker_transport_options=TIMEOUTS,
        broker_connection_timeout=2,
    )
    return app
