"""Which checkpoints leave the artifact store, and which stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from tests.webapp.jobs import scene
from webapp.cluster.retention import Retention, tidy
from webapp.jobs.models import Checkpoint, Job, State
from webapp.jobs.presenting import job_message
from webapp.teams.models import Team, User
from workers.contract.store import Store


@pytest.fixture
def old(team: Team, alice: User, seed_spec: dict[str, Any], store: Store, tmp_path: Path) -> Checkpoint:
    """The older one of two, which gave way to the newer."""
    job = scene.queue(team, alice, seed_spec)
    attempt = scene.launch(job, "h1")
    (tmp_path / "manifest.json").write_text("{}")
    now = timezone.now()
    rows = []
    for step, dropped in ((10, now), (20, None)):
        row = Checkpoint.objects.create(
            job=job, attempt=attempt, name=f"step-{step}", step=step, stored=now, dropped=dropped
        )
        store.put(tmp_path / "manifest.json", f"{row.key}/manifest.json")
        rows.append(row)
    return rows[0]


def test_what_gave_way_is_removed(old: Checkpoint, store: Store) -> None:
    assert tidy() == [old.pk]
    assert store.names(f"jobs/{old.job_id}/checkpoints") == ["step-20"]
    assert Checkpoint.objects.get(pk=old.pk).stored is None
    assert tidy() == []


@pytest.mark.parametrize("state", [State.QUEUED, State.STARTING, State.PAUSED])
def test_what_a_job_waits_to_go_on_from_stays(
    team: Team, alice: User, seed_spec: dict[str, Any], old: Checkpoint, state: State
) -> None:
    waiting = scene.queue(team, alice, seed_spec)
    Job.objects.filter(pk=waiting.pk).update(state=state, resume_checkpoint=old)
    assert tidy() == []
    Job.objects.filter(pk=waiting.pk).update(state=State.CANCELLED)
    assert tidy() == [old.pk]


def test_the_last_one_in_the_store_stays(old: Checkpoint) -> None:
    Checkpoint.objects.filter(name="step-20").update(stored=None)
    assert tidy() == []


def test_a_store_that_is_away_is_asked_again(old: Checkpoint, store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "store" / "jobs" / str(old.job_id) / "checkpoints"
    folder.parent.chmod(0o500)
    folder.chmod(0o500)
    tidy()
    folder.parent.chmod(0o700)
    folder.chmod(0o700)
    tidy()
    assert store.names(f"jobs/{old.job_id}/checkpoints") == ["step-20"]


def test_what_gave_way_is_shown_no_more_unless_nothing_newer_is_stored(old: Checkpoint) -> None:
    assert [each["name"] for each in job_message(old.job)["checkpoints"]] == ["step-20"]
    Checkpoint.objects.filter(name="step-20").update(stored=None)
    assert [each["name"] for each in job_message(old.job)["checkpoints"]] == ["step-20", "step-10"]


def test_a_job_that_drops_them_fast_is_kept_up_with(old: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.cluster.retention.MOST", 1)
    Checkpoint.objects.create(
        job=old.job, attempt=old.attempt, name="step-11", step=11, stored=timezone.now(), dropped=timezone.now()
    )
    retention = Retention()
    retention.tend()
    retention.tend()
    assert list(Checkpoint.objects.in_store().values_list("name", flat=True)) == ["step-20"]
