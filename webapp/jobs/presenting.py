"""A job as it crosses to the browser: the `job` message of its page and the `row` message of tables.

The shapes are docs/architecture.md's "What crosses to the browser". Non-finite numbers are strings already on the row.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.urls import reverse

from webapp.jobs.figures import thin
from webapp.jobs.models import ACTIVE, Attempt, Job, Process, State
from webapp.jobs.phases import eta_seconds, phase_text, progress

ROW_SPARK_LENGTH = 40


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
    """Everything that the job's page shows but its series and logs. Two queries when `owner` is joined."""
    attempt = job.current_attempt
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
        "artifacts": job.artifacts,
        "can_stop": job.state in ACTIVE and job.state != State.STOPPING,
    }


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
