"""What hosts tell of checkpoints and of the artifact store, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from webapp.jobs.figures import jsonable
from webapp.jobs.models import Attempt, Checkpoint, Process, Supervisor
from webapp.jobs.moments import moment
from webapp.jobs.texts import fit
from workers.contract import events as ev
from workers.contract.keeping import Checkpoint as Keeping

Told = ev.CheckpointSaved | ev.CheckpointDropped | ev.Stored | ev.NotStored
KEEP: int = Keeping.model_fields["keep"].default


def take(attempt: Attempt, event: Told) -> None:
    """Store the fact. What the engine says and what its supervisor says come in any order."""
    match event:
        case ev.CheckpointSaved():
            if event.best:
                Checkpoint.objects.filter(job_id=attempt.job_id, best=True).update(best=False)
            _write(attempt, event.name, **_saved(attempt, event))
        case ev.CheckpointDropped():
            _write(attempt, event.name, dropped=moment(event.time, after=None) or timezone.now())
        case ev.Stored():
            _write(attempt, event.name, stored=moment(event.time, after=None) or timezone.now(), problem="")
            _supersede(attempt, event.name)
        case ev.NotStored():
            _write(
                attempt, event.name, host=fit(event.host, 100), path=event.path[:4096], problem=fit(event.cause, 1000)
            )


def note_held(attempt: Attempt, host: str, artifacts: Sequence[Mapping[str, Any]]) -> None:
    """Note whether files lie on `host` alone, so that it is asked to store them once the store takes them again."""
    lost = Checkpoint.objects.filter(attempt=attempt, host=host, stored__isnull=True, dropped__isnull=True)
    held = any(each.get("problem") and not each.get("stored") and each.get("host") == host for each in artifacts)
    held = held or lost.exclude(problem="").exists()
    Supervisor.objects.filter(attempt=attempt, host=host).update(holds=held)


def _write(attempt: Attempt, name: str, **fields: Any) -> None:
    step = int(name.rpartition("-")[2]) if name.rpartition("-")[2].isdecimal() else 0
    Checkpoint.objects.update_or_create(
        attempt_id=attempt.pk,
        name=fit(name, 40),
        defaults=fields,
        create_defaults={"job_id": attempt.job_id, "step": step, **fields},
    )


def _saved(attempt: Attempt, event: ev.CheckpointSaved) -> dict[str, Any]:
    host = Process.objects.filter(attempt_id=attempt.pk, name=event.process).values_list("host", flat=True).first()
    return {
        "step": event.step,
        "samples_seen": event.samples_seen,
        "bytes": event.bytes,
        "sha256": event.sha256[:64],
        "seconds": event.seconds,
        "metrics": {name: jsonable(value) for name, value in event.metrics.items()},
        "best": event.best,
        "host": host or "",
        "path": event.path[:4096],
        "created": moment(event.time, after=None),
    }


def _supersede(attempt: Attempt, name: str) -> None:
    """The new one has taken the place of its namesake; of earlier attempts only what the spec keeps stays."""
    earlier = Checkpoint.objects.in_store().filter(job_id=attempt.job_id, attempt_id__lt=attempt.pk)
    earlier.filter(name=name).update(stored=None, dropped=timezone.now())
    settings = (attempt.job.spec_json or {}).get("checkpoint") or {}
    newer = Checkpoint.objects.in_store().filter(attempt_id=attempt.pk, dropped__isnull=True).count()
    room = max(0, int(settings.get("keep") or KEEP) - newer)
    kept = _newest(earlier.filter(dropped__isnull=True, best=False), room)
    earlier.filter(dropped__isnull=True, best=False).exclude(pk__in=kept).update(dropped=timezone.now())


def _newest(rows: QuerySet[Checkpoint], number: int) -> list[int]:
    return list(rows.order_by("-attempt", "-step").values_list("pk", flat=True)[:number])
