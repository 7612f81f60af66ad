"""Pause, checkpoint, resume: what becomes of the job's row and of its checkpoints."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.webapp.jobs import scene
from webapp.jobs import progress, services, transitions
from webapp.jobs.models import Attempt, Checkpoint, Job, State
from webapp.jobs.phases import phase_text, trained_seconds
from webapp.jobs.presenting import job_message
from webapp.teams.models import Team, User
from workers.contract import events as ev


@pytest.fixture
def job(team: Team, alice: User, seed_spec: dict[str, Any], settings: Any) -> Job:
    settings.REDIS_URL = "unix:///nonexistent/redis.sock"
    return scene.queue(team, alice, seed_spec)


def running(job: Job, *hosts: str) -> Attempt:
    attempt = scene.launch(job, *(hosts or ("h1",)))
    tell(attempt, "worker-0", scene.phase("training"))
    return attempt


def tell(attempt: Attempt, process: str, *events: ev.Event) -> None:
    progress.apply(attempt=attempt, process=process, events=events)


def saved(step: int, **more: Any) -> ev.CheckpointSaved:
    facts = {"path": f"/runs/1/checkpoints/step-{step}", "samples_seen": step * 128, "bytes": 10, "sha256": "0" * 64}
    return ev.CheckpointSaved(
        time=time.time(), process="worker-0", name=f"step-{step}", step=step, seconds=0.5, **facts, **more
    )


def stored(step: int, host: str = "h1") -> ev.Stored:
    return ev.Stored(time=time.time(), process=f"supervisor@{host}", kind="checkpoint", name=f"step-{step}", bytes=10)


def keep(attempt: Attempt, *steps: int) -> None:
    for step in steps:
        tell(attempt, "worker-0", saved(step))
        tell(attempt, "supervisor@h1", stored(step))


def paused(job: Job, step: int = 50) -> Attempt:
    attempt = running(job)
    tell(attempt, "worker-0", scene.points([step + 3], loss=[0.5]))
    assert services.request_pause(job=job)
    keep(attempt, step)
    tell(attempt, "supervisor@h1", scene.ended("h1", "paused"))
    job.refresh_from_db()
    return attempt


def test_a_running_job_pauses_and_holds_nothing(job: Job) -> None:
    attempt = running(job)
    assert services.request_pause(job=job)
    job.refresh_from_db()
    assert (job.state, phase_text(job)) == (State.PAUSING, "pausing")
    keep(attempt, 50)
    tell(attempt, "supervisor@h1", scene.ended("h1", "paused"))
    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, job.ended) == (State.PAUSED, None)
    assert attempt.ended == job.paused
    assert job not in Job.objects.active() and job not in Job.objects.has_ended()


def test_it_is_paused_when_the_last_host_is(job: Job) -> None:
    attempt = running(job, "h1", "h2")
    services.request_pause(job=job)
    tell(attempt, "supervisor@h1", scene.ended("h1", "paused"))
    job.refresh_from_db()
    assert job.state == State.PAUSING
    tell(attempt, "supervisor@h2", scene.ended("h2", "succeeded"))
    job.refresh_from_db()
    assert job.state == State.PAUSED


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        (("succeeded", "succeeded"), State.SUCCEEDED),
        (("paused", "failed"), State.FAILED),
        (("failed", "paused"), State.FAILED),
    ],
)
def test_a_pause_that_comes_too_late_or_fails_is_no_pause(job: Job, outcomes: tuple[str, str], state: State) -> None:
    attempt = running(job, "h1", "h2")
    services.request_pause(job=job)
    for host, outcome in zip(("h1", "h2"), outcomes, strict=True):
        tell(attempt, f"supervisor@{host}", scene.ended(host, outcome, cause="why"))
    job.refresh_from_db()
    assert job.state == state


def test_a_stop_beats_a_pause(job: Job, alice: User) -> None:
    attempt = running(job)
    services.request_pause(job=job)
    assert services.request_stop(job=job, by=alice)
    assert not services.request_pause(job=job)
    tell(attempt, "supervisor@h1", scene.ended("h1", "paused"))
    job.refresh_from_db()
    assert (job.state, job.cause) == (State.CANCELLED, "Stopped by alice.")


def test_a_paused_job_is_stopped_at_once(job: Job, alice: User) -> None:
    paused(job)
    assert services.request_stop(job=job, by=alice)
    job.refresh_from_db()
    assert (job.state, job.paused) == (State.CANCELLED, None)


@pytest.mark.parametrize("state", [State.QUEUED, State.STOPPING, State.SUCCEEDED, State.FAILED])
def test_only_what_is_on_its_way_can_be_paused(job: Job, state: State) -> None:
    Job.objects.filter(pk=job.pk).update(state=state)
    assert not services.request_pause(job=job)


def test_a_resumed_job_waits_with_its_checkpoint(job: Job) -> None:
    paused(job)
    assert services.resume(job=job)
    job.refresh_from_db()
    assert (job.state, job.step, job.resume_step) == (State.QUEUED, 50, 50)
    assert job.resume_checkpoint is not None and job.resume_checkpoint.key == f"jobs/{job.pk}/checkpoints/step-50"
    assert phase_text(job) == "queued (resumes from step 50)"
    assert not services.resume(job=job)


@pytest.mark.parametrize("outcome", ["failed", "cancelled"])
def test_what_failed_or_was_stopped_goes_on_from_its_newest_stored_checkpoint(job: Job, outcome: str) -> None:
    attempt = running(job)
    keep(attempt, 10, 20)
    tell(attempt, "worker-0", saved(30))
    tell(attempt, "supervisor@h1", scene.ended("h1", outcome, cause="why"))
    job.refresh_from_db()
    message = job_message(job)
    assert (message["can_resume"], message["going_on_from"]) == (True, 20)
    assert services.resume(job=job)
    job.refresh_from_db()
    assert (job.resume_step, job.cause, job.ended) == (20, "", None)


def test_without_a_stored_checkpoint_nothing_goes_on(job: Job) -> None:
    attempt = running(job)
    tell(attempt, "worker-0", saved(30))
    left = ev.NotStored(
        time=time.time(), process="supervisor@h1", kind="checkpoint", name="step-30", host="h1", path="/x", cause="full"
    )
    tell(attempt, "supervisor@h1", left, scene.ended("h1", "failed", cause="why"))
    job.refresh_from_db()
    message = job_message(job)
    assert not message["can_resume"]
    assert (message["checkpoints"][0]["problem"], message["checkpoints"][0]["host"]) == ("full", "h1")
    assert not services.resume(job=job)


def test_what_an_earlier_attempt_still_tells_moves_nothing(job: Job) -> None:
    earlier = paused(job)
    services.resume(job=job)
    earlier.refresh_from_db()
    tell(earlier, "worker-0", scene.points([57], loss=[0.1]))
    job.refresh_from_db()
    assert (job.step, job.latest["loss"]) == (50, 0.5)
    running(job)
    tell(earlier, "worker-0", scene.points([58], loss=[0.1]))
    job.refresh_from_db()
    assert job.step == 50


def test_the_time_of_the_pause_is_not_training(job: Job) -> None:
    attempt = paused(job)
    now = timezone.now()
    then = {"attempt_first_step": now - timedelta(seconds=100), "paused": now - timedelta(seconds=40)}
    Job.objects.filter(pk=job.pk).update(**then)
    job.refresh_from_db()
    assert trained_seconds(job) == pytest.approx(60, abs=1)
    services.resume(job=job)
    job.refresh_from_db()
    assert job.earlier_seconds == pytest.approx(60, abs=1)
    assert job.first_step is not None and job.attempt_first_step is None
    assert attempt.number == 1


def test_a_checkpoint_is_asked_for_until_it_comes(job: Job) -> None:
    attempt = running(job)
    job.refresh_from_db()
    assert services.request_save(job=job)
    job.refresh_from_db()
    assert job_message(job)["saving"]
    tell(attempt, "worker-0", saved(30))
    job.refresh_from_db()
    assert job.save_requested is None


def test_facts_of_a_checkpoint_come_in_any_order(job: Job) -> None:
    attempt = running(job)
    tell(attempt, "supervisor@h1", stored(10))
    tell(attempt, "worker-0", saved(10, metrics={"loss": 0.25}, best=True))
    [row] = Checkpoint.objects.all()
    assert (row.step, row.metrics, row.best, row.host) == (10, {"loss": 0.25}, True, "h1")
    assert row.stored is not None
    tell(attempt, "worker-0", saved(20, best=True))
    assert list(Checkpoint.objects.filter(best=True).values_list("name", flat=True)) == ["step-20"]


def test_a_later_attempt_takes_the_place_of_its_namesake_and_of_what_is_too_many(job: Job) -> None:
    first = running(job)
    keep(first, 10, 20)
    tell(first, "supervisor@h1", scene.ended("h1", "failed", cause="why"))
    services.resume(job=job)
    job.refresh_from_db()
    second = running(job)
    keep(second, 30)
    assert dropped() == {(1, "step-10")}
    keep(second, 20)
    assert dropped() == {(1, "step-10"), (1, "step-20")}


def dropped() -> set[tuple[int, str]]:
    return set(Checkpoint.objects.filter(dropped__isnull=False).values_list("attempt__number", "name"))


def test_an_end_after_the_pause_changes_nothing(job: Job) -> None:
    attempt = paused(job)
    assert not transitions.end(attempt, state=State.FAILED)
    assert not transitions.pause(attempt)
