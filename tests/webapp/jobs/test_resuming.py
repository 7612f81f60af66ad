"""A job that goes on from another job's checkpoint: what is refused, in which words, and what is offered instead."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from tests.webapp.jobs import scene
from webapp.configure.services import submit
from webapp.jobs import resuming, services
from webapp.jobs.models import Checkpoint, Job
from webapp.jobs.presenting import job_message
from webapp.teams.models import Team, User
from workers.contract.problems import SpecInvalid
from workers.contract.spec import parse


@pytest.fixture(autouse=True)
def _nobody_to_wake(settings: Any) -> None:
    settings.REDIS_URL = "unix:///nonexistent/redis.sock"


@pytest.fixture
def earlier(team: Team, alice: User, seed_spec: dict[str, Any]) -> Job:
    """A job with the checkpoints step-20 (stored) and step-30 (not)."""
    job = scene.queue(team, alice, seed_spec)
    attempt = scene.launch(job, "h1")
    for step, stored in ((20, timezone.now()), (30, None)):
        Checkpoint.objects.create(
            job=job, attempt=attempt, name=f"step-{step}", step=step, samples_seen=step * 128, stored=stored
        )
    return job


def going_on(seed_spec: dict[str, Any], job: int, checkpoint: str = "step-20", **changes: Any) -> dict[str, Any]:
    return {**seed_spec, **changes, "resume": {"job": job, "checkpoint": checkpoint}}


def refusal(team: Team, alice: User, document: dict[str, Any]) -> str:
    with pytest.raises(SpecInvalid) as error:
        submit(team=team, owner=alice, spec=parse(document))
    return str(error.value.problems[0])


def test_it_begins_where_the_checkpoint_stands(
    team: Team, alice: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    other = {"name": "one_device", "options": {}}
    job = submit(team=team, owner=alice, spec=parse(going_on(seed_spec, earlier.pk, strategy=other)))
    assert job.resume_checkpoint is not None and job.resume_checkpoint.key == f"jobs/{earlier.pk}/checkpoints/step-20"
    assert (job.step, job.resume_step) == (20, 20)


def test_steps_of_another_size_are_counted_anew(
    team: Team, alice: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    training = {**seed_spec["training"], "global_batch": 64}
    job = submit(team=team, owner=alice, spec=parse(going_on(seed_spec, earlier.pk, training=training)))
    assert job.resume_step == 40


def test_another_model_is_refused_and_the_difference_named(
    team: Team, alice: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    model = {"name": "mlp", "options": {"units": [32], "dropout": [0.1]}}
    words = refusal(team, alice, going_on(seed_spec, earlier.pk, model=model))
    assert words.startswith("model.options.dropout: differs from job")
    assert "Leave it out: no stored checkpoint fits" in words


def test_another_dataset_or_optimizer_is_refused(
    team: Team, alice: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    dataset = {"name": "synthetic_images", "options": {}}
    assert "dataset.name" in refusal(team, alice, going_on(seed_spec, earlier.pk, dataset=dataset))
    training = {**seed_spec["training"], "optimizer": {"name": "sgd"}}
    assert "training.optimizer.name" in refusal(team, alice, going_on(seed_spec, earlier.pk, training=training))


def test_what_is_not_stored_is_refused_and_the_newest_that_is_offered(
    team: Team, alice: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    words = refusal(team, alice, going_on(seed_spec, earlier.pk, "step-30"))
    assert "is not in the artifact store" in words
    assert f"The newest that fits is step-20 of job {earlier.pk}" in words


def test_a_job_of_another_team_is_no_job(
    team: Team, alice: User, charlie: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    Job.objects.filter(pk=earlier.pk).update(team=Team.objects.get(slug="speech"))
    words = refusal(team, alice, going_on(seed_spec, earlier.pk))
    assert "resume.job: is not a job of Vision" in words
    assert "Leave it out" in words


def test_a_job_that_would_have_nothing_to_do_is_refused(
    team: Team, alice: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    training = {key: value for key, value in seed_spec["training"].items() if key != "epochs"} | {"steps": 20}
    assert "training.steps: are done already" in refusal(
        team, alice, going_on(seed_spec, earlier.pk, training=training)
    )


def test_a_checkpoint_that_has_just_gone_is_refused_at_the_last_moment(
    team: Team, alice: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    Checkpoint.objects.update(stored=None)
    with pytest.raises(SpecInvalid):
        resuming.locked(team, parse(going_on(seed_spec, earlier.pk)))


def put_to_use(seed_spec: dict[str, Any], job: int, **changes: Any) -> dict[str, Any]:
    rest = {key: value for key, value in seed_spec.items() if key != "training"}
    return {**rest, "kind": "evaluate", "resume": {"job": job, "checkpoint": "step-20"}, **changes}


def test_weights_may_be_put_to_use_on_other_data_of_the_same_kind(
    team: Team, alice: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    images = {"name": "synthetic_images", "options": {"shape": [8, 8, 1], "classes": 10, "samples": 50}}
    training = {"steps": 1, "optimizer": {"name": "sgd"}}
    job = submit(
        team=team, owner=alice, spec=parse(put_to_use(seed_spec, earlier.pk, dataset=images, training=training))
    )
    assert (job.kind, job.step, job.resume_step) == ("evaluate", 0, None)
    assert job.resume_checkpoint is not None


def test_weights_are_not_put_to_use_on_another_kind_of_data_or_in_another_model(
    team: Team, alice: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    words = refusal(team, alice, put_to_use(seed_spec, earlier.pk, dataset={"name": "wine"}))
    assert words.startswith("dataset.name: is 13 with 3 classes (classification), and job")
    assert f"The newest that fits is step-20 of job {earlier.pk}" not in words
    assert "model.name" in refusal(team, alice, put_to_use(seed_spec, earlier.pk, model={"name": "linear"}))


def test_a_job_that_takes_no_steps_is_neither_paused_nor_saved_nor_resumed(
    team: Team, alice: User, earlier: Job, seed_spec: dict[str, Any]
) -> None:
    job = submit(team=team, owner=alice, spec=parse(put_to_use(seed_spec, earlier.pk)))
    scene.launch(job, "h1")
    assert not services.request_pause(job=job)
    assert not services.request_save(job=job)
    assert services.request_stop(job=job, by=alice)
    assert not services.resume(job=job)
    assert not any(job_message(job)[key] for key in ("can_pause", "can_save", "can_resume"))
