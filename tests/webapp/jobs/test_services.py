from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from tests.conftest import RedisServer
from tests.webapp.jobs import scene
from webapp.jobs import services
from webapp.jobs.models import Job, State
from webapp.teams.models import Team, User
from workers.contract.wire import WAKE


def test_it_queues_a_job_with_the_arithmetic_of_its_spec(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    job = scene.queue(team, alice, seed_spec, tags=["baseline", "seed-1"])
    assert (job.state, job.replicas, job.processes_total, job.global_batch) == (State.QUEUED, 2, 2, 128)
    assert job.total_steps == 10 * job.steps_per_epoch > 0
    assert job.tags == " baseline seed-1 "
    assert job.spec.to_dict() == job.spec_json


def test_it_tells_pages_and_control_after_the_commit(
    team: Team,
    alice: User,
    seed_spec: dict[str, Any],
    redis_server: RedisServer,
    settings: Any,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    settings.REDIS_URL = redis_server.url
    with django_capture_on_commit_callbacks(execute=True):
        job = scene.queue(team, alice, seed_spec)
        with redis_server.client() as client:
            assert not client.exists("lockstep:live", WAKE)
    with redis_server.client() as client:
        [(_, entry)] = client.xrange("lockstep:live")
        assert entry == {b"kind": b"job", b"job": str(job.pk).encode(), b"team": str(team.pk).encode()}
        assert client.llen(WAKE) == 1


def test_it_queues_all_the_same_while_redis_is_away(
    team: Team,
    alice: User,
    seed_spec: dict[str, Any],
    settings: Any,
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock?db=0"
    with django_capture_on_commit_callbacks(execute=True):
        job = scene.queue(team, alice, seed_spec)
    assert Job.objects.get(pk=job.pk).state == State.QUEUED
    assert "Redis is away" in caplog.text


def test_it_cancels_a_queued_job_at_once(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    job = scene.queue(team, alice, seed_spec)
    assert services.request_stop(job=job, by=alice)
    job.refresh_from_db()
    assert (job.state, job.cause) == (State.CANCELLED, "Cancelled by alice.")
    assert job.ended and job.revision == 1


@pytest.mark.parametrize("state", [State.STARTING, State.RUNNING])
def test_it_marks_a_job_on_hosts_as_stopping(team: Team, alice: User, seed_spec: dict[str, Any], state: State) -> None:
    job = scene.queue(team, alice, seed_spec)
    scene.launch(job, "h1")
    Job.objects.filter(pk=job.pk).update(state=state)
    assert services.request_stop(job=job, by=None)
    job.refresh_from_db()
    assert (job.state, job.stop_requested_by) == (State.STOPPING, "an operator")
    assert services.request_stop(job=job, by=alice), "asking twice is no fault"


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.CANCELLED])
def test_it_leaves_an_ended_job_alone(team: Team, alice: User, seed_spec: dict[str, Any], state: State) -> None:
    job = scene.queue(team, alice, seed_spec)
    Job.objects.filter(pk=job.pk).update(state=state)
    assert not services.request_stop(job=job, by=alice)
    job.refresh_from_db()
    assert job.state == state and job.revision == 0
