"""A checkpoint that the artifact store has lost bytes of is refused by name, and the newest whole one is offered."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.webapp.jobs import scene
from webapp.jobs import resuming, services
from webapp.jobs.models import Checkpoint, Job, State
from webapp.teams.models import Team, User
from workers.contract.spec import parse
from workers.contract.store import Store

pytestmark = pytest.mark.django_db

STATE = b"weights" * 100


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.LOCKSTEP_STORE = str(tmp_path / "store")
    return tmp_path / "store" / "jobs"


@pytest.fixture
def job(team: Team, alice: User, seed_spec: dict[str, Any], folder: Path, tmp_path: Path) -> Job:
    """A stopped job with two whole checkpoints in the store."""
    job = scene.queue(team, alice, seed_spec)
    attempt = scene.launch(job, "h1")
    for step in (50, 60):
        name = f"step-{step}"
        put(Store(str(folder.parent)), job, name, tmp_path)
        sha256 = hashlib.sha256((folder / f"{job.pk}/checkpoints/{name}/manifest.json").read_bytes()).hexdigest()
        Checkpoint.objects.create(
            job=job,
            attempt=attempt,
            name=name,
            step=step,
            samples_seen=step * 128,
            sha256=sha256,
            stored=timezone.now(),
        )
    Job.objects.filter(pk=job.pk).update(state=State.CANCELLED)
    job.refresh_from_db()
    return job


def put(store: Store, job: Job, name: str, scratch: Path) -> None:
    files = {"state.npz": {"bytes": len(STATE), "sha256": hashlib.sha256(STATE).hexdigest()}}
    for file, content in (
        ("state.npz", STATE),
        ("manifest.json", json.dumps({"version": "lockstep/v1", "files": files}).encode()),
    ):
        (scratch / file).write_bytes(content)
        store.put(scratch / file, f"jobs/{job.pk}/checkpoints/{name}/{file}")


def of_version(path: Path) -> None:
    path.write_text(path.read_text().replace("lockstep/v1", "lockstep/v9"))


def edited(path: Path) -> None:
    path.write_text(path.read_text().replace('"bytes"', '"byte"'))


DAMAGES = [
    ("state.npz", lambda path: path.write_bytes(STATE[:12]), "is torn: state.npz has 12 bytes instead of 700"),
    ("state.npz", lambda path: path.unlink(), "is torn: state.npz is missing"),
    ("manifest.json", lambda path: path.unlink(), "is torn: the artifact store has lost its manifest.json"),
    ("manifest.json", lambda path: path.write_text("{"), "is torn: its manifest.json is not the one that was written"),
    ("manifest.json", edited, "is torn: its manifest.json is not the one that was written"),
    ("manifest.json", of_version, "is of version lockstep/v9, and this Lockstep reads lockstep/v1"),
]


@pytest.mark.parametrize(("file", "damage", "words"), DAMAGES)
def test_a_new_job_is_refused_before_anything_starts(
    job: Job, team: Team, folder: Path, seed_spec: dict[str, Any], file: str, damage: Any, words: str
) -> None:
    damage(folder / f"{job.pk}/checkpoints/step-60/{file}")
    spec = parse({**seed_spec, "resume": {"job": job.pk, "checkpoint": "step-60"}})
    [problem] = resuming.problems(team, spec)
    assert problem.path == "resume.checkpoint"
    assert problem.message == f"step-60 of job {job.pk} {words}"
    assert problem.remedy == f"The newest that fits is step-50 of job {job.pk}"


def test_resume_names_the_torn_one_and_then_goes_on_from_the_newest_whole_one(
    job: Job, folder: Path, client: Client, alice: User
) -> None:
    # As long as before: only its digest tells.
    (folder / f"{job.pk}/checkpoints/step-60/state.npz").write_bytes(STATE[::-1])
    client.force_login(alice)
    answer = client.post(f"/jobs/{job.pk}/resume", headers={"accept": "application/json"})
    assert answer.status_code == 409
    said = answer.json()
    assert said["why"] == (
        "step-60 is torn: state.npz is not what was written: its sha256 differs. "
        "The newest whole one is step-50: resume again to go on from there."
    )
    assert (said["state"], said["going_on_from"]) == ("cancelled", 50)
    [torn] = [each for each in said["checkpoints"] if each["step"] == 60]
    assert not torn["stored"] and "its sha256 differs" in torn["problem"]
    assert services.resume(job=job)
    job.refresh_from_db()
    assert (job.state, job.resume_step) == (State.QUEUED, 50)


def test_the_command_says_so_too(job: Job, folder: Path) -> None:
    for step in (50, 60):
        (folder / f"{job.pk}/checkpoints/step-{step}/state.npz").unlink()
    with pytest.raises(CommandError, match=r"step-60 is torn.*step-50 is torn.*No other checkpoint"):
        call_command("resume", str(job.pk))
    job.refresh_from_db()
    assert job.state == State.CANCELLED


@pytest.mark.parametrize("away", ["not-mounted", "a-file"])
def test_a_store_that_is_away_condemns_no_checkpoint(job: Job, tmp_path: Path, settings: Any, away: str) -> None:
    (tmp_path / "a-file").touch()
    settings.LOCKSTEP_STORE = str(tmp_path / away)
    assert services.resume(job=job)
    job.refresh_from_db()
    assert job.resume_step == 60
