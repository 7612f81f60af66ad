"""The history of a job is kept and told in order, whoever looked meanwhile."""

from __future__ import annotations

import pytest

from tests.webapp.jobs import scene
from webapp.jobs import progress, services
from webapp.jobs.history import told
from webapp.jobs.models import Checkpoint, Job
from webapp.jobs.presenting import job_message

pytestmark = pytest.mark.django_db


def apply(attempt, *events, process="worker-0"):
    progress.apply(attempt=attempt, process=process, events=events)


def texts(job):
    return [each["text"] for each in told(Job.objects.get(pk=job.pk))]


@pytest.fixture
def job(team, alice, seed_spec):
    return scene.queue(team, alice, seed_spec)


def test_it_tells_a_whole_life_with_who_asked_and_why_it_ended(job, alice):
    attempt = scene.launch(job, "h1")
    apply(attempt, *[scene.phase(name) for name in ("importing", "compiling", "training")])
    assert services.request_pause(job=job, by=alice)
    Checkpoint.objects.create(job=job, attempt=attempt, name="step-50", step=50, stored=job.created)
    apply(attempt, scene.ended("h1", "paused"), process="supervisor@h1")
    assert services.resume(job=job, by=alice)
    again = scene.launch(Job.objects.get(pk=job.pk), "h1")
    apply(again, scene.phase("importing"), scene.ended("h1", "failed", "worker-0 ran out of memory."))
    apply(again, scene.ended("h1", "failed", "worker-0 ran out of memory."), process="supervisor@h1")
    assert texts(job) == [
        "Submitted by alice",
        "Sent to its hosts",
        "Running",
        "Importing TensorFlow",
        "Compiling the first step",
        "Training",
        "Pause asked for by alice",
        "Paused",
        "Resumed from step 50 by alice",
        "Sent to its hosts",
        "Running",
        "Importing TensorFlow",
        "Failed: worker-0 ran out of memory.",
    ]


def test_a_cause_that_a_resumed_job_has_lost_stays_in_its_history(job, alice):
    attempt = scene.launch(job, "h1")
    Checkpoint.objects.create(job=job, attempt=attempt, name="step-50", step=50, stored=job.created)
    apply(attempt, scene.ended("h1", "failed", "The network went."), process="supervisor@h1")
    assert services.resume(job=job)
    assert Job.objects.get(pk=job.pk).cause == ""
    assert texts(job)[-2:] == ["Failed: The network went.", "Resumed from step 50 by an operator"]


def test_it_keeps_the_first_time_of_each_phase_of_an_attempt_alone(job):
    attempt = scene.launch(job, "h1", "h2")
    for _ in range(3):
        apply(attempt, scene.phase("training"), scene.phase("evaluating"))
    apply(attempt, scene.phase("compiling", process="worker-1"), process="worker-1")
    assert texts(job)[2:] == ["Running", "Training", "Evaluating"]


def test_a_change_that_did_not_happen_is_not_told(job, alice):
    assert not services.request_pause(job=job, by=alice)
    assert texts(job) == ["Submitted by alice"]


def test_the_page_shows_it(job):
    scene.launch(job, "h1")
    (submitted, sent) = job_message(Job.objects.get(pk=job.pk))["history"]
    assert submitted["kind"] == "queued"
    assert (sent["text"], sent["kind"]) == ("Sent to its hosts", "starting")
