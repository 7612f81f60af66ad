"""Every change of a job's state: a filtered UPDATE each, whose row count says whether we won.

SQLite and PostgreSQL both evaluate the filter again on the newest row, so of two processes that try, one gets True.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.jobs import history, notices
from webapp.jobs.models import Attempt, Checkpoint, Job
from webapp.jobs.states import ENDED, ON_HOSTS, RESUMABLE, State
from webapp.jobs.texts import fit

CAUSE_LENGTH = 1000


def _change(
    job_id: int, states: tuple[State, ...], *, detail: str = "", at: datetime | None = None, **fields: Any
) -> bool:
    """Change the row; a new state is noted in the job's history, with `detail` and as of `at`."""
    with transaction.atomic(savepoint=False):
        rows = Job.objects.filter(pk=job_id, state__in=states).update(revision=F("revision") + 1, **fields)
        if rows == 1 and "state" in fields:
            history.note(job_id, fields["state"], at=at or timezone.now(), detail=detail)
    return rows == 1


def start(job_id: int, *, processes: int, at: datetime, hosts: str = "") -> bool:
    """QUEUED -> STARTING: it has its devices, on `hosts`."""
    fields: dict[str, Any] = {
        "state": State.STARTING,
        "reason": "",
        "started": at,
        "processes_total": processes,
        "processes_up": 0,
    }
    return _change(job_id, (State.QUEUED,), detail=hosts, at=at, **fields)


def run(job_id: int, *, at: datetime) -> bool:
    """STARTING -> RUNNING: a process of it was heard."""
    return _change(job_id, (State.STARTING,), at=at, state=State.RUNNING)


def begin_stopping(job_id: int, *, by: str) -> bool:
    """STARTING, RUNNING, PAUSING -> STOPPING: a person wants it to end."""
    fields: dict[str, Any] = {"state": State.STOPPING, "stop_requested": timezone.now(), "stop_requested_by": by}
    return _change(job_id, (State.STARTING, State.RUNNING, State.PAUSING), detail=by, **fields)


def begin_pausing(job_id: int, *, by: str) -> bool:
    """STARTING, RUNNING -> PAUSING: a person wants its devices for a while."""
    return _change(job_id, (State.STARTING, State.RUNNING), detail=by, state=State.PAUSING)


def ask_to_save(job_id: int, *, at: datetime) -> bool:
    """Note that a person wants a checkpoint of a RUNNING job."""
    return _change(job_id, (State.RUNNING,), save_requested=at)


def end_others(job_id: int) -> bool:
    """STARTING, RUNNING, PAUSING -> STOPPING: one host is done and not well, so the others have to end too."""
    return _change(job_id, (State.STARTING, State.RUNNING, State.PAUSING), state=State.STOPPING)


def cancel_waiting(job_id: int, *, by: str) -> bool:
    """QUEUED, PAUSED -> CANCELLED at once: nothing of it runs."""
    now = timezone.now()
    fields: dict[str, Any] = {
        "state": State.CANCELLED,
        "stop_requested": now,
        "stop_requested_by": by,
        "ended": now,
        "reason": "",
    }
    cause = fit(f"Cancelled by {by}." if by else "Cancelled.", CAUSE_LENGTH)
    return _change(job_id, (State.QUEUED, State.PAUSED), detail=cause, cause=cause, paused=None, **fields)


def resume(job_id: int, checkpoint: Checkpoint, *, epoch: int, earlier_seconds: float, by: str) -> bool:
    """PAUSED, FAILED, CANCELLED -> QUEUED: its next attempt goes on from `checkpoint`.

    What its attempts have told beyond that step is superseded; the row says again where the job stands.
    """
    fields: dict[str, Any] = {"ended": None, "paused": None, "cause": "", "failed_process": "", "log_tail": ""}
    fields |= {"stop_requested": None, "stop_requested_by": "", "save_requested": None, "reason": ""}
    fields |= {"started": None, "attempt_first_step": None, "phase": "", "phase_detail": "", "processes_up": 0}
    fields |= {"step": checkpoint.step, "epoch": epoch, "earlier_seconds": earlier_seconds}
    fields |= {"state": State.QUEUED, "resume_checkpoint": checkpoint, "resume_step": checkpoint.step}
    detail = f"from step {checkpoint.step:,} by {by}"
    return _change(job_id, RESUMABLE, detail=detail, **fields)


def fail_queued(job_id: int, *, cause: str) -> bool:
    """QUEUED -> FAILED: it can never start (its plugin is gone)."""
    now, cause = timezone.now(), fit(cause, CAUSE_LENGTH)
    return _change(job_id, (State.QUEUED,), detail=cause, state=State.FAILED, ended=now, reason="", cause=cause)


def wait(job_id: int, *, reason: str) -> bool:
    """Store why a queued job waits; False when that is no news or it does not wait any more."""
    rows = Job.objects.filter(pk=job_id, state=State.QUEUED).exclude(reason=fit(reason, 500))
    return rows.update(reason=fit(reason, 500), revision=F("revision") + 1) == 1


def end(
    attempt: Attempt,
    *,
    state: State,
    cause: str = "",
    failed_process: str = "",
    log_tail: str = "",
    at: datetime | None = None,
) -> bool:
    """End the attempt and, with it, its job; from now on state changes from its hosts are refused.

    False when either had ended already. The control process is woken to give the devices to the next.
    """
    if state not in ENDED:
        raise ValueError(f"state: {state} is not an end. Use one of {', '.join(ENDED)}")
    at = at or timezone.now()
    words = {"cause": fit(cause, CAUSE_LENGTH), "failed_process": fit(failed_process, 40), "log_tail": fit(log_tail)}
    return _over(attempt, at, state=state, ended=at, save_requested=None, **words)


def pause(attempt: Attempt, *, at: datetime | None = None) -> bool:
    """End the attempt; its job is PAUSED and holds nothing until somebody resumes it. False when either had ended."""
    at = at or timezone.now()
    return _over(attempt, at, state=State.PAUSED, paused=at, save_requested=None, phase="", phase_detail="")


def _over(attempt: Attempt, at: datetime, **fields: Any) -> bool:
    with transaction.atomic():
        won = Attempt.objects.live().filter(pk=attempt.pk).update(ended=at) == 1 and _change(
            attempt.job_id, ON_HOSTS, detail=fields.get("cause", ""), at=at, **fields
        )
        if won:
            notices.changed([attempt.job_id])
            notices.wake_control()
    return won
