"""A job as it crosses to the browser: the `job` message of its page and the `row` message of tables.

The shapes are docs/architecture.md's "What crosses to the browser". Non-finite numbers are strings already on the row.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q
from django.urls import reverse

from webapp.jobs import history, resuming
from webapp.jobs.figures import thin
from webapp.jobs.models import ACTIVE, Attempt, Checkpoint, Job, Process, State
from webapp.jobs.phases import eta_seconds, phase_text, progress
from webapp.jobs.states import RESUMABLE

ROW_SPARK_LENGTH = 40
MOST_CHECKPOINTS = 100


def row_message(job: Job) -> dict[str, Any]:
    """One line of the jobs table. Asks nothing of the database when `owner` is joined (`Job.objects.for_rows()`)."""
    return {
        "type": "row",
        "id": job.pk,
        "url": reverse("job", args=[job.pk]),
        **_common(job),
        "loss": job.latest.get("loss"),
        "accuracy": job.latest.get("accuracy"),
        "throughput": job.latest.get("throughput"),
        "spark": [value for _, value in thin(job.spark, ROW_SPARK_LENGTH)],
    }


def job_message(job: Job) -> dict[str, Any]:
    """Everything that the job's page shows but its series and logs. Four queries when `owner` is joined, and one more
    for one that could only go on from another job's checkpoint."""
    attempt = job.current_attempt
    checkpoints = shown_checkpoints(job)
    going_on = _going_on_from(job, checkpoints)
    return {
        "type": "job",
        "id": job.pk,
        "url": reverse("job", args=[job.pk]),
        **_common(job),
        "phase": job.phase,
        "reason": job.reason,
        "cause": job.cause,
        "failed_process": job.failed_process,
        "log_tail": job.log_tail,
        "epoch": job.epoch,
        "epochs": job.spec_json.get("training", {}).get("epochs"),
        "steps_per_epoch": job.steps_per_epoch,
        "global_batch": job.global_batch,
        "throughput": job.latest.get("throughput"),
        "step_time": job.latest.get("step_time"),
        "first_step": _iso(job.first_step),
        "tags": job.tags.split(),
        "latest": job.latest,
        "replica_info": job.started_info.get("replicas", []),
        "processes": _processes(attempt),
        "artifacts": [_artifact(job, each) for each in job.artifacts],
        "checkpoints": [_checkpoint(job, each) for each in checkpoints],
        "history": history.told(job),
        "segment": job.segment,
        "paused": _iso(job.paused),
        "earlier_seconds": job.earlier_seconds,
        "resume_step": job.resume_step,
        "saving": job.save_requested is not None and job.state == State.RUNNING,
        "can_stop": job.state in (*ACTIVE, State.PAUSED) and job.state != State.STOPPING,
        "can_pause": job.trains and job.state in (State.STARTING, State.RUNNING),
        "can_save": job.trains and job.state == State.RUNNING,
        "can_resume": job.trains and job.state in RESUMABLE and going_on is not None,
        "going_on_from": going_on,
    }


def shown_checkpoints(job: Job) -> list[Checkpoint]:
    """Those that stay, newest first, and the newest stored one even while it gives way: the job would go on from it."""
    newest = job.checkpoints.in_store().newest_first().values("pk")[:1]
    there = job.checkpoints.filter(Q(dropped__isnull=True) | Q(pk__in=newest))
    return list(there.select_related("attempt").defer("attempt__assignment").newest_first()[:MOST_CHECKPOINTS])


def _going_on_from(job: Job, checkpoints: list[Checkpoint]) -> int | None:
    """The step that a resumed job would go on from, as `resuming.newest` chooses; None when there is none."""
    own = next((each.step for each in checkpoints if each.stored), None)
    if own is not None or job.state not in RESUMABLE or job.resume_checkpoint_id is None:
        return own
    newest = resuming.newest(job)
    return newest.step if newest else None


def _checkpoint(job: Job, checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "name": checkpoint.name,
        "attempt": checkpoint.attempt.number,
        "step": checkpoint.step,
        "samples_seen": checkpoint.samples_seen,
        "bytes": checkpoint.bytes,
        "seconds": checkpoint.seconds,
        "metrics": checkpoint.metrics,
        "best": checkpoint.best,
        "created": _iso(checkpoint.created or checkpoint.stored),
        "stored": checkpoint.stored is not None,
        "host": checkpoint.host,
        "path": checkpoint.path,
        "problem": checkpoint.problem,
        "url": reverse("job-checkpoint", args=[job.pk, checkpoint.name]) if checkpoint.stored else "",
    }


def _artifact(job: Job, artifact: dict[str, Any]) -> dict[str, Any]:
    stored = bool(artifact.get("stored"))
    url = reverse("job-artifact", args=[job.pk, artifact["name"]]) if stored else ""
    return {**artifact, "stored": stored, "url": url}


def _common(job: Job) -> dict[str, Any]:
    return {
        "name": job.name,
        "state": str(job.state),
        "state_label": State(job.state).label,
        "phase_text": phase_text(job),
        "progress": progress(job),
        "eta_seconds": eta_seconds(job),
        "step": job.step,
        "total_steps": job.total_steps,
        "kind": job.kind,
        "dataset": job.dataset,
        "model": job.model,
        "strategy": job.strategy,
        "replicas": job.replicas,
        "owner": job.owner.get_username(),
        "created": _iso(job.created),
        "started": _iso(job.started),
        "ended": _iso(job.ended),
        "revision": job.revision,
    }


def _processes(attempt: Attempt | None) -> list[dict[str, Any]]:
    return [_process(process) for process in attempt.processes.all()] if attempt else []


def _process(process: Process) -> dict[str, Any]:
    return {
        "name": process.name,
        "host": process.host,
        "phase": "ended" if process.ended else process.phase,
        "pid": process.pid,
        "devices": process.devices,
        "replicas": process.replicas,
        "exit": process.exit_signal or process.exit_code,
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
