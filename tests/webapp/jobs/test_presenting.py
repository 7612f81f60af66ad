from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.webapp.jobs import scene
from webapp.jobs.models import Job, State
from webapp.jobs.presenting import job_message, row_message
from webapp.teams.models import Team, User

JOB_KEYS = {
    *("type", "id", "name", "url", "state", "state_label", "phase", "phase_text", "reason", "cause", "failed_process"),
    *("log_tail", "step", "total_steps", "epoch", "epochs", "steps_per_epoch", "global_batch", "replicas", "progress"),
    *("eta_seconds", "throughput", "step_time", "created", "started", "first_step", "ended", "dataset", "model"),
    *(
        "strategy",
        "owner",
        "tags",
        "latest",
        "history",
        "replica_info",
        "processes",
        "artifacts",
        "can_stop",
        "revision",
    ),
    *("can_pause", "can_save", "can_resume", "going_on_from", "saving", "checkpoints", "segment", "paused"),
    *("earlier_seconds", "resume_step", "kind", "history"),
}
ROW_KEYS = {
    *("type", "id", "url", "name", "state", "state_label", "phase_text", "progress", "eta_seconds", "step"),
    *("total_steps", "dataset", "model", "strategy", "replicas", "owner", "created", "started", "ended", "loss"),
    *("accuracy", "throughput", "spark", "revision", "kind"),
}


@pytest.fixture
def job(team: Team, alice: User, seed_spec: dict[str, Any]) -> Job:
    return scene.queue(team, alice, seed_spec)


def test_it_holds_exactly_what_the_architecture_names(job: Job) -> None:
    scene.launch(job, "h1", "h2")
    assert set(job_message(job)) == JOB_KEYS
    assert set(row_message(job)) == ROW_KEYS
    [first, _] = job_message(job)["processes"]
    assert sorted(first) == ["devices", "exit", "host", "name", "phase", "pid", "replicas"]
    json.dumps(job_message(job), allow_nan=False)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "queued"),
        ({"reason": "waiting for 2 more GPUs"}, "queued: waiting for 2 more GPUs"),
        ({"state": State.STARTING}, "starting: 0 of 2 processes up"),
        ({"state": State.RUNNING, "processes_up": 1}, "starting: 1 of 2 processes up"),
        ({"state": State.RUNNING, "processes_up": 2, "phase": "compiling"}, "compiling the first step"),
        ({"state": State.RUNNING, "processes_up": 2, "phase": "training"}, "taking the first step"),
        (
            {"state": State.RUNNING, "processes_up": 2, "phase": "training", "step": 1240, "total_steps": 6000},
            "step 1,240 of 6,000",
        ),
        (
            {"state": State.RUNNING, "processes_up": 2, "phase": "loading", "phase_detail": "loading mnist"},
            "loading mnist",
        ),
        (
            {"state": State.RUNNING, "processes_up": 2, "phase": "importing", "phase_detail": "Importing TensorFlow"},
            "importing TensorFlow",
        ),
        (
            {"state": State.RUNNING, "processes_up": 2, "phase": "evaluating", "phase_detail": "On 297 test samples"},
            "evaluating on 297 test samples",
        ),
        ({"state": State.RUNNING, "processes_up": 2, "phase": "saving", "phase_detail": "m.keras"}, "saving m.keras"),
        ({"state": State.STOPPING}, "stopping: one host has failed, ending the others"),
        ({"state": State.SUCCEEDED, "step": 1}, "finished 1 step"),
        (
            {"state": State.SUCCEEDED, "step": 40, "total_steps": 60, "phase_detail": "Stopped early at epoch 4"},
            "finished 40 steps: stopped early at epoch 4",
        ),
        (
            {"state": State.SUCCEEDED, "step": 60, "total_steps": 60, "phase_detail": "model.keras"},
            "finished 60 steps",
        ),
        ({"state": State.FAILED, "step": 7, "total_steps": 60}, "failed at step 7 of 60"),
        ({"state": State.CANCELLED}, "stopped before its first step"),
        ({"kind": "evaluate", "state": State.SUCCEEDED, "phase_detail": "On 9 test samples"}, "evaluated"),
        ({"kind": "export", "state": State.SUCCEEDED, "phase_detail": "model.keras"}, "exported model.keras"),
        ({"kind": "export", "state": State.FAILED}, "failed before it was done"),
        (
            {"kind": "predict", "state": State.SUCCEEDED, "phase_detail": "359 of 359 examples"},
            "predicted 359 examples",
        ),
        (
            {
                "kind": "predict",
                "state": State.RUNNING,
                "processes_up": 2,
                "phase": "predicting",
                "phase_detail": "9 of",
            },
            "predicting 9 of",
        ),
    ],
)
def test_it_says_the_phase_in_words(job: Job, fields: dict[str, Any], text: str) -> None:
    for name, value in fields.items():
        setattr(job, name, value)
    assert row_message(job)["phase_text"] == text


def test_it_reckons_the_time_that_is_left(job: Job) -> None:
    job.state, job.step, job.total_steps, job.global_batch = State.RUNNING, 50, 100, 128
    job.latest = {"step_time": 0.5, "throughput": 1.0}
    assert row_message(job)["eta_seconds"] == 25
    job.latest = {"step_time": "NaN", "throughput": 256.0}
    assert row_message(job)["eta_seconds"] == 25
    job.latest = {"throughput": 0}
    assert row_message(job)["eta_seconds"] is None
    job.attempt_first_step = timezone.now() - timedelta(seconds=100)
    assert row_message(job)["eta_seconds"] == pytest.approx(100, abs=2)
    job.state = State.SUCCEEDED
    assert (row_message(job)["eta_seconds"], row_message(job)["progress"]) == (None, 1.0)


def test_it_offers_stop_only_while_there_is_something_to_stop(job: Job) -> None:
    offered = {}
    for state in State:
        job.state = state
        offered[state] = job_message(job)["can_stop"]
    assert {state for state, can in offered.items() if can} == {
        *(State.QUEUED, State.STARTING, State.RUNNING, State.PAUSING, State.PAUSED)
    }


def test_it_shows_a_hundred_rows_with_one_query(
    team: Team, alice: User, seed_spec: dict[str, Any], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    job = scene.queue(team, alice, seed_spec)
    job.spark = [[i, float(i)] for i in range(80)]
    Job.objects.bulk_create([_copy(job) for _ in range(99)])
    with django_assert_num_queries(1):
        rows = [row_message(job) for job in Job.objects.for_rows()]
    assert len(rows) == 100 and all(len(row["spark"]) <= 40 for row in rows)


def test_it_asks_four_times_for_a_job_page(job: Job, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    scene.launch(job, "h1", "h2", "h3")
    found = Job.objects.select_related("owner", "team").get(pk=job.pk)
    with django_assert_num_queries(4):
        job_message(found)


def _copy(job: Job) -> Job:
    fields = {
        field.attname: getattr(job, field.attname) for field in Job._meta.concrete_fields if not field.primary_key
    }
    return Job(**fields)
