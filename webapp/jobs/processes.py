"""Facts about the processes of an attempt: what each is at, its pid, its exit and its own words."""

from __future__ import annotations

from webapp.jobs.models import Attempt, Process
from webapp.jobs.moments import moment
from webapp.jobs.texts import fit
from workers.contract import events as ev


def enter(attempt: Attempt, name: str, phase: str) -> int | None:
    """Note the phase of a process; how many processes are up now when this was its first word, else None."""
    rows = Process.objects.filter(attempt_id=attempt.pk)
    first = rows.filter(name=name, phase="").update(phase=phase)
    if not first:
        rows.filter(name=name).update(phase=phase)
        return None
    return rows.exclude(phase="").count()


def is_chief(attempt: Attempt, name: str) -> bool:
    """Whether the phase of that process is the job's."""
    return Process.objects.filter(attempt_id=attempt.pk, name=name, chief=True).exists()


def take(attempt: Attempt, event: ev.Failed | ev.Spawned | ev.Exited) -> bool:
    """Store the fact; False when the attempt has no such process."""
    rows = Process.objects.filter(attempt_id=attempt.pk)
    at = moment(event.time, after=None)
    if isinstance(event, ev.Failed):
        return bool(rows.filter(name=event.process).update(cause=fit(event.cause, 1000)))
    if isinstance(event, ev.Spawned):
        return bool(rows.filter(name=event.target).update(pid=event.pid, started=at))
    exit_ = {"exit_code": event.code, "exit_signal": fit(event.signal or "", 20), "ended": at}
    return bool(rows.filter(name=event.target).update(**exit_))
