from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import RedisServer
from tests.webapp.cluster.hosts import hear
from tests.webapp.jobs import scene
from webapp.cluster import broker, hearing, scheduler
from webapp.cluster.clock import database_now
from webapp.cluster.dispatch import dispatch
from webapp.jobs import services
from webapp.jobs.models import Attempt, Job, State, Supervisor
from webapp.jobs.progress import apply
from webapp.teams.models import Team, User
from workers.contract import events as ev
from workers.contract.wire import ORDER, SAVE, attempt_key


@pytest.fixture
def attempt(team: Team, alice: User, seed_spec: dict[str, Any], redis_server: RedisServer, settings: Any) -> Attempt:
    settings.REDIS_URL = redis_server.url
    hear("h1", cpus=1)
    hear("h2", cpus=1)
    scene.queue(team, alice, seed_spec)
    scheduler.schedule()
    return Attempt.objects.get()


def queued(server: RedisServer, host: str) -> list[tuple[str, list[Any]]]:
    """The tasks that wait for a host, as its Celery worker would read them, the oldest first."""
    with server.client() as client:
        messages = [json.loads(raw) for raw in client.lrange(f"host.{host}", 0, -1)][::-1]
    bodies = [json.loads(base64.b64decode(message["body"])) for message in messages]
    return [(message["headers"]["task"], body[0]) for message, body in zip(messages, bodies, strict=True)]


def later(**fields: float) -> None:
    now = database_now()
    Supervisor.objects.update(**{name: now - timedelta(seconds=ago) for name, ago in fields.items()})


@pytest.mark.parametrize(
    ("redis_url", "celery_url"),
    [
        ("redis://h:6379/3", "redis://h:6379/3"),
        ("rediss://h/0", "rediss://h/0"),
        ("unix:///run/r.sock?db=2", "redis+socket:///run/r.sock?virtual_host=2"),
        ("unix:///run/r.sock", "redis+socket:///run/r.sock?virtual_host=0"),
    ],
)
def test_it_writes_redis_addresses_as_celery_does(redis_url: str, celery_url: str) -> None:
    assert broker.broker_url(redis_url) == celery_url


def test_it_sends_the_assignment_to_every_host(attempt: Attempt, redis_server: RedisServer) -> None:
    assert dispatch() == 2
    for host in ("h1", "h2"):
        assert queued(redis_server, host) == [(broker.LAUNCH, [attempt.assignment])]
    assert dispatch() == 0


def test_it_sends_again_until_the_supervisor_is_heard(attempt: Attempt, redis_server: RedisServer) -> None:
    dispatch()
    later(sent=6)
    hearing.hear_attempt(attempt.pk, "h1")
    assert dispatch() == 1
    assert (len(queued(redis_server, "h1")), len(queued(redis_server, "h2"))) == (1, 2)


def test_it_does_not_flood_a_host_that_reads_nothing(attempt: Attempt, redis_server: RedisServer) -> None:
    for _ in range(20):
        dispatch()
        later(sent=6)
    assert len(queued(redis_server, "h1")) == 4


def test_it_sends_again_to_a_redis_that_forgot_everything(attempt: Attempt, redis_server: RedisServer) -> None:
    dispatch()
    redis_server.kill()
    later(sent=6)
    with pytest.raises(broker.BrokerAway):
        dispatch()
    redis_server.start()
    assert dispatch() == 2
    assert queued(redis_server, "h2") == [(broker.LAUNCH, [attempt.assignment])]


def test_it_sends_stop_to_every_host_until_each_has_ended(
    attempt: Attempt, alice: User, redis_server: RedisServer
) -> None:
    hearing.hear_attempt(attempt.pk, "h1")
    hearing.hear_attempt(attempt.pk, "h2")
    services.request_stop(job=attempt.job, by=alice)
    assert dispatch() == 2
    assert queued(redis_server, "h1") == [(broker.STOP, [attempt.pk])]
    assert redis_server.client().hget(attempt_key(attempt.pk), ORDER) == b"stop"
    assert dispatch() == 0
    apply(attempt=attempt, process="supervisor@h1", events=[scene.ended("h1", "cancelled")])
    later(stop_sent=4)
    assert dispatch() == 1
    assert len(queued(redis_server, "h2")) == 2


def test_it_stops_the_others_when_one_host_has_failed(attempt: Attempt, redis_server: RedisServer) -> None:
    apply(attempt=attempt, process="worker-0", events=[scene.phase("training")])
    hearing.hear_attempt(attempt.pk, "h2")
    apply(attempt=attempt, process="supervisor@h1", events=[scene.ended("h1", "failed", "crash")])
    assert dispatch() == 1
    assert queued(redis_server, "h2") == [(broker.STOP, [attempt.pk])]


def test_it_sends_nothing_for_an_attempt_that_has_ended(attempt: Attempt) -> None:
    Job.objects.update(state=State.FAILED)
    Attempt.objects.update(ended=database_now())
    assert dispatch() == 0


def test_it_orders_a_pause_again_and_again_until_a_stop_takes_its_place(
    attempt: Attempt, redis_server: RedisServer
) -> None:
    redis = redis_server.client()
    services.request_pause(job=attempt.job)
    assert dispatch() == 2, "the launches: nothing has been heard yet"
    assert redis.hget(attempt_key(attempt.pk), ORDER) == b"pause"
    redis.delete(attempt_key(attempt.pk))
    dispatch()
    assert redis.hget(attempt_key(attempt.pk), ORDER) is None
    later(pause_sent=4)
    dispatch()
    assert redis.hget(attempt_key(attempt.pk), ORDER) == b"pause"
    services.request_stop(job=attempt.job, by=None)
    later(pause_sent=4)
    dispatch()
    assert redis.hget(attempt_key(attempt.pk), ORDER) == b"stop"


def test_it_asks_for_a_checkpoint_under_one_name_until_there_is_one(
    attempt: Attempt, redis_server: RedisServer
) -> None:
    redis = redis_server.client()
    apply(attempt=attempt, process="worker-0", events=[scene.phase("training")])
    dispatch()
    assert redis.hget(attempt_key(attempt.pk), SAVE) is None
    assert services.request_save(job=attempt.job)
    dispatch()
    first = redis.hget(attempt_key(attempt.pk), SAVE)
    dispatch()
    assert first is not None and redis.hget(attempt_key(attempt.pk), SAVE) == first
    assert services.request_save(job=attempt.job)
    dispatch()
    assert redis.hget(attempt_key(attempt.pk), SAVE) != first


@pytest.fixture
def held(attempt: Attempt) -> Attempt:
    """An attempt that ended while the store was away; its checkpoint lies on h1 alone."""
    told = ev.NotStored(
        time=1.75e9, process="supervisor@h1", kind="checkpoint", name="step-5", host="h1", path="/runs/1", cause="away"
    )
    apply(attempt=attempt, process="supervisor@h1", events=[told, scene.ended("h1", "failed")])
    apply(attempt=attempt, process="supervisor@h2", events=[scene.ended("h2", "failed")])
    dispatch()
    later(sent=31)
    return attempt


def test_a_host_is_asked_again_for_what_the_store_could_not_take(held: Attempt, redis_server: RedisServer) -> None:
    assert dispatch() == 1
    assert queued(redis_server, "h1")[-1] == ("workers.tasks.store", [held.pk])
    assert dispatch() == 0, "it was just asked"
    Attempt.objects.update(ended=database_now() - timedelta(hours=1))
    later(sent=60)
    assert dispatch() == 0, "after an hour, not every half minute any more"
    later(sent=600)
    assert dispatch() == 1


def test_it_is_not_asked_once_all_is_stored_or_the_job_went_on(held: Attempt, redis_server: RedisServer) -> None:
    Job.objects.update(state=State.QUEUED)
    assert dispatch() == 0
    Job.objects.update(state=State.FAILED)
    later_one = Attempt.objects.create(job=held.job, number=2, assignment={})
    assert dispatch() == 0
    later_one.delete()
    stored = ev.Stored(time=1.75e9, process="supervisor@h1", kind="checkpoint", name="step-5", bytes=1)
    apply(attempt=held, process="supervisor@h1", events=[stored])
    assert dispatch() == 0
    assert services.resume(job=held.job), "now it can go on"
