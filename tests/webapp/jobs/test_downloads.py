"""What a job left in the artifact store, as browsers get it."""

from __future__ import annotations

import asyncio
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.test import AsyncClient, Client
from django.utils import timezone

from tests.webapp.jobs import scene
from webapp.jobs.models import Checkpoint, Job
from webapp.teams.models import Team, User
from workers.contract.store import Store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def job(team: Team, alice: User, seed_spec: dict[str, Any], store: Store, tmp_path: Path) -> Job:
    """A job whose model, and one checkpoint of two files, are in the store."""
    job = scene.queue(team, alice, seed_spec)
    attempt = scene.launch(job, "h1")
    file = tmp_path / "file"
    file.write_bytes(b"weights" * 400_000)
    store.put(file, f"jobs/{job.pk}/artifacts/model.keras")
    for name in ("manifest.json", "weights/w.bin"):
        store.put(file, f"jobs/{job.pk}/checkpoints/step-5/{name}")
    Job.objects.filter(pk=job.pk).update(
        artifacts=[{"name": "model.keras", "path": "/x", "bytes": 2_800_000, "sha256": "", "stored": True}]
    )
    Checkpoint.objects.create(job=job, attempt=attempt, name="step-5", step=5, stored=timezone.now())
    return job


def fetch(user: User, url: str) -> tuple[StreamingHttpResponse, bytes]:
    """As under ASGI, piece by piece."""

    async def get() -> tuple[Any, bytes]:
        client = AsyncClient(headers={"Accept-Encoding": "gzip"})
        await client.aforce_login(user)
        response = await client.get(url)
        return response, b"".join([piece async for piece in response.streaming_content])

    return asyncio.run(get())


def test_the_model_comes_whole_under_a_telling_name(job: Job, bob: User) -> None:
    response, body = fetch(bob, f"/jobs/{job.pk}/artifacts/model.keras")
    assert body == b"weights" * 400_000
    assert response["Content-Length"] == str(len(body))
    assert response["Content-Disposition"] == f'attachment; filename="digits-on-two-workers-{job.pk}-model.keras"'


def test_a_checkpoint_comes_as_a_zip(job: Job, bob: User) -> None:
    response, body = fetch(bob, f"/jobs/{job.pk}/checkpoints/step-5.zip")
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        assert sorted(archive.namelist()) == ["manifest.json", "weights/w.bin"]
        assert archive.testzip() is None
        assert archive.read("weights/w.bin") == b"weights" * 400_000
    assert response["Content-Disposition"].endswith(f'{job.pk}-step-5.zip"')


@pytest.mark.parametrize("path", ["artifacts/model.keras", "checkpoints/step-5.zip"])
def test_a_stranger_finds_nothing(job: Job, charlie: User, client: Client, path: str) -> None:
    assert client.get(f"/jobs/{job.pk}/{path}").status_code == 302
    client.force_login(charlie)
    assert client.get(f"/jobs/{job.pk}/{path}").status_code == 404


def test_what_lies_on_a_host_only_is_said_to(job: Job, rita: User, client: Client) -> None:
    client.force_login(rita)
    facts = {"name": "model.keras", "path": "/runs/1/model.keras", "host": "h1", "problem": "the store was full"}
    Job.objects.filter(pk=job.pk).update(artifacts=[facts])
    answer = client.get(f"/jobs/{job.pk}/artifacts/model.keras")
    assert answer.status_code == 404
    for words in ("the store was full", "h1", "/runs/1/model.keras"):
        assert words in answer.content.decode()


@pytest.mark.parametrize(
    "path", ["artifacts/other.keras", "checkpoints/step-6.zip", "artifacts/..", "checkpoints/..zip"]
)
def test_what_was_never_written_is_said_to_be_missing(job: Job, rita: User, client: Client, path: str) -> None:
    client.force_login(rita)
    assert client.get(f"/jobs/{job.pk}/{path}").status_code == 404


def test_a_store_that_has_lost_it_is_said_to(job: Job, rita: User, client: Client, store: Store) -> None:
    store.remove(f"jobs/{job.pk}")
    client.force_login(rita)
    for path in ("artifacts/model.keras", "checkpoints/step-5.zip"):
        answer = client.get(f"/jobs/{job.pk}/{path}")
        assert answer.status_code == 404
        assert "The artifact store does not answer" in answer.content.decode()
