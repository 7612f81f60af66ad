"""The new-job page with a checkpoint to go on from or to put to use."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.configure.conftest import NEW
from tests.webapp.jobs import scene
from webapp.configure import beginnings, forms
from webapp.jobs.models import Checkpoint, Job
from webapp.teams.models import Team, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(team: Team, bob: User, seed_spec: dict[str, Any]) -> Job:
    """One with a stored checkpoint at step 5."""
    job = scene.queue(team, bob, seed_spec)
    attempt = scene.launch(job, "h")
    Checkpoint.objects.create(job=job, attempt=attempt, name="step-5", step=5, stored=timezone.now())
    return job


def test_it_goes_on_from_a_checkpoint_under_another_strategy(member: Client, job: Job) -> None:
    shown = member.get(NEW, {"from": job.pk, "checkpoint": "step-5"}).content.decode()
    assert f'name="resume.job" value="{job.pk}"' in shown
    assert 'name="resume.checkpoint" value="step-5"' in shown
    sent = forms.form_from_spec(job.spec_json) | beginnings.going_on(job.pk, "step-5") | {"strategy.name": "one_device"}
    answer = member.post(NEW, sent | {"view": "form"})
    assert answer.status_code == 303
    made = Job.objects.newest_first()[0]
    assert (made.strategy, made.resume_step) == ("one_device", 5)


def test_it_names_the_checkpoint_that_would_do(member: Client, job: Job) -> None:
    sent = forms.form_from_spec(job.spec_json) | beginnings.going_on(job.pk, "step-9") | {"view": "form"}
    answer = member.post("/t/vision/jobs/new/check", sent).json()
    [problem] = answer["problems"]
    assert problem["field"] == "resume.checkpoint"
    assert problem["remedy"] == f"The newest that fits is step-5 of job {job.pk}"


@pytest.mark.parametrize("kind", forms.USES)
def test_it_puts_a_checkpoint_to_use(member: Client, job: Job, kind: str) -> None:
    shown = member.get(NEW, {"from": job.pk, "checkpoint": "step-5", "kind": kind}).content.decode()
    assert f'name="kind" value="{kind}" checked' in shown
    typed = forms.form_from_spec(job.spec_json) | beginnings.going_on(job.pk, "step-5")
    answer = member.post(NEW, typed | beginnings.put_to_use(typed, kind) | {"view": "form"})
    assert answer.status_code == 303
    made = Job.objects.newest_first()[0]
    assert (made.kind, made.total_steps, made.step, made.resume_step) == (kind, 0, 0, None)
    assert made.resume_checkpoint is not None
    page = member.get(reverse("job", args=[made.pk])).content.decode()
    assert "Results" in page
    assert "tab-checkpoints" not in page
    assert member.get("/t/vision/compare/", {"jobs": made.pk}).status_code == 200


def test_it_asks_for_a_checkpoint_where_none_is_named(member: Client) -> None:
    typed = forms.blank() | {"kind": "evaluate", "view": "form"}
    [problem] = member.post("/t/vision/jobs/new/check", typed).json()["problems"]
    assert problem["field"] == "resume.job"
    assert problem["message"] == "is missing, and a job to evaluate needs the weights of a checkpoint"
    assert problem["remedy"] == "Train one first: no stored checkpoint fits this model and dataset"
