"""The end of an attempt out of the last words of its supervisors, one a host."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from webapp.jobs import notices, transitions
from webapp.jobs.models import Attempt, Process, Supervisor
from webapp.jobs.moments import moment
from webapp.jobs.states import State
from webapp.jobs.texts import fit
from workers.contract.events import Ended

NO_CAUSE = "It ended without saying why."


def take(attempt: Attempt, *, host: str, event: Ended) -> bool:
    """Store a host's last word; with the last of all hosts the attempt ends, and its job with it.

    True when a page shows the difference. While others go on, a host that did not succeed makes the control process
    stop them. Of an attempt that has already ended only the host's word is kept, so that its devices can go.
    """
    with transaction.atomic(savepoint=False):
        told = {
            "outcome": event.outcome,
            "cause": fit(event.cause, 1000),
            "target": fit(event.target or "", 40),
            "log_tail": fit(event.log_tail),
            "ended": moment(event.time, after=None),
        }
        Supervisor.objects.update_or_create(attempt_id=attempt.pk, host=host, defaults=told)
        notices.wake_control()
        if attempt.ended is not None:
            return False
        supervisors = list(Supervisor.objects.filter(attempt_id=attempt.pk))
        if all(supervisor.outcome for supervisor in supervisors):
            return _end(attempt, supervisors)
        return event.outcome not in {"succeeded", "paused"} and transitions.end_others(attempt.job_id)


def _end(attempt: Attempt, supervisors: Sequence[Supervisor]) -> bool:
    job = attempt.job
    job.refresh_from_db(fields=["stop_requested", "stop_requested_by"])
    at = max((s.ended for s in supervisors if s.ended), default=None)
    if all(s.outcome == "succeeded" for s in supervisors):
        return transitions.end(attempt, state=State.SUCCEEDED, at=at)
    if job.stop_requested is None and all(s.outcome in {"succeeded", "paused"} for s in supervisors):
        return transitions.pause(attempt, at=at)
    worst = _first(supervisors, "failed") or _first(supervisors, "cancelled") or supervisors[0]
    if job.stop_requested is not None:
        return transitions.end(attempt, state=State.CANCELLED, cause=f"Stopped by {job.stop_requested_by}.", at=at)
    if worst.outcome == "cancelled":
        return transitions.end(attempt, state=State.CANCELLED, cause=worst.cause or NO_CAUSE, at=at)
    cause, target = _cause(attempt, worst)
    return transitions.end(
        attempt, state=State.FAILED, cause=cause, failed_process=target, log_tail=worst.log_tail, at=at
    )


def _first(supervisors: Sequence[Supervisor], outcome: str) -> Supervisor | None:
    """The earliest of those with that outcome: it is the cause, the others followed."""
    those = [s for s in supervisors if s.outcome == outcome and s.ended]
    return min(those, key=lambda s: (s.ended, s.pk)) if those else None


def _cause(attempt: Attempt, supervisor: Supervisor) -> tuple[str, str]:
    """The supervisor's sentence, else the words of the process itself."""
    own = Process.objects.filter(attempt_id=attempt.pk).exclude(cause="").order_by("ended", "pk")
    process = own.filter(name=supervisor.target).first() or (None if supervisor.target else own.first())
    target = supervisor.target or (process.name if process else "")
    return supervisor.cause or (process.cause if process else NO_CAUSE), target
