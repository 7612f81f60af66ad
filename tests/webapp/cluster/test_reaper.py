from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import RedisServer
from tests.webapp.cluster.hosts import age, hear, listen
from tests.webapp.jobs import scene
from webapp.cluster import hearing, reaper
from webapp.cluster.clock import database_now
from webapp.cluster.models import Device, Host
from webapp.jobs import services
from webapp.jobs.models import Attempt, Job, State, Supervisor
from webapp.jobs.progress import apply
from webapp.teams.models import Team, User
from workers.contract.wire import ORDER, attempt_key


@pytest.fixture
def attempt(team: Team, alice: User, seed_spec: dict[str, Any]) -> Attempt:
    hear("h1")
    attempt = scene.launch(scene.queue(team, alice, seed_spec), "h1", "h1")
    Device.objects.update(attempt=attempt)
    return attempt


def job_of(attempt: Attempt) -> Job:
    return Job.objects.get(pk=attempt.job_id)


def test_it_ends_an_attempt_whose_host_has_gone_silent(attempt: Attempt) -> None:
    listen()
    age(attempt, 500, sent=500, heard=31)
    Host.objects.update(heard=database_now() - timedelta(seconds=31))
    assert reaper.reap() == [attempt.job_id]
    job = job_of(attempt)
    assert job.state == State.FAILED and job.cause.startswith("Host h1 has been silent for 30 s")
    assert Attempt.objects.get(pk=attempt.pk).ended
    assert reaper.reap() == []


def test_it_tells_a_silent_supervisor_from_a_silent_host(attempt: Attempt) -> None:
    listen()
    age(attempt, 500, sent=500, heard=31)
    assert reaper.reap() == [attempt.job_id]
    assert job_of(attempt).cause.startswith("Its supervisor on h1 has been silent for 30 s although the host itself")


def test_it_names_a_host_that_never_started(attempt: Attempt) -> None:
    listen()
    age(attempt, 59, sent=58)
    assert reaper.reap() == []
    age(attempt, 61, sent=60)
    assert reaper.reap() == [attempt.job_id]
    assert "did not start it" in job_of(attempt).cause


@pytest.mark.parametrize(
    ("since", "last"), [(3600, 60), (10, 0)], ids=["ingest is away", "ingest has only just come back"]
)
def test_it_reaps_nothing_while_nobody_could_have_heard(attempt: Attempt, since: float, last: float) -> None:
    age(attempt, 5000, sent=5000, heard=3600)
    assert reaper.reap() == []
    listen(since_seconds=since, last_seconds=last)
    assert reaper.reap() == []
    assert job_of(attempt).state == State.STARTING


def test_it_leaves_those_alone_that_talk_or_have_said_their_last_word(attempt: Attempt) -> None:
    listen()
    age(attempt, 5000, sent=5000, heard=20)
    assert reaper.reap() == []
    age(attempt, 5000, heard=4000)
    Supervisor.objects.update(outcome="succeeded")
    assert reaper.reap() == []


def test_it_cancels_a_stopped_job_that_no_host_ever_started(attempt: Attempt, bob: User) -> None:
    services.request_stop(job=attempt.job, by=bob)
    assert reaper.reap() == []
    Job.objects.update(stop_requested=database_now() - timedelta(seconds=6))
    assert reaper.reap() == [attempt.job_id]
    assert job_of(attempt).cause == "Stopped by bob before a host had started it."


def test_it_cancels_a_stopped_job_whose_host_has_gone_silent(attempt: Attempt, bob: User) -> None:
    listen()
    services.request_stop(job=attempt.job, by=bob)
    age(attempt, 500, heard=40)
    assert reaper.reap() == [attempt.job_id]
    assert job_of(attempt).state == State.CANCELLED


def test_it_frees_devices_after_the_last_word_of_their_host(attempt: Attempt) -> None:
    assert reaper.release() == 0
    apply(attempt=attempt, process="supervisor@h1", events=[scene.ended("h1", "succeeded")])
    assert reaper.release() == 2
    assert not Device.objects.filter(attempt__isnull=False).exists()


def test_it_holds_devices_until_a_silent_host_says_that_the_gang_is_gone(attempt: Attempt) -> None:
    listen()
    age(attempt, 500, sent=500, heard=31)
    reaper.reap()
    assert reaper.release() == 0, "the host has not been heard since"
    Attempt.objects.update(ended=database_now() - timedelta(seconds=5))
    hear("h1", attempts=(attempt.pk,))
    assert reaper.release() == 0, "it still runs there"
    hear("h1")
    assert reaper.release() == 2


def test_it_orders_the_supervisor_of_a_reaped_attempt_to_kill_its_gang(
    attempt: Attempt, redis_server: RedisServer, settings: Any
) -> None:
    settings.REDIS_URL = redis_server.url
    listen()
    age(attempt, 500, sent=500, heard=31)
    reaper.reap()
    reaper.void_ended()
    with redis_server.client() as client:
        assert client.hget(attempt_key(attempt.pk), ORDER) == b"void"
        assert int(client.ttl(attempt_key(attempt.pk))) > 0
        client.flushall()
        Supervisor.objects.update(stop_sent=database_now() - timedelta(seconds=4))
        Attempt.objects.update(ended=database_now() - timedelta(hours=2))
        reaper.void_ended()
        assert not client.exists(attempt_key(attempt.pk)), "long ended and silent"
        hearing.hear_attempt(attempt.pk, "h1")
        reaper.void_ended()
        assert client.hget(attempt_key(attempt.pk), ORDER) == b"void", "it is back from the dead"


def test_it_frees_the_devices_of_a_deleted_job(attempt: Attempt) -> None:
    attempt.job.delete()
    assert Device.objects.filter(attempt__isnull=True, host=Host.objects.get()).count() == 2
