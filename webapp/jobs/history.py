"""What became of a job, in the order in which it happened: kept as rows, told in words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from webapp.jobs.models import Attempt, Change, Job, State
from webapp.jobs.phases import SENTENCES
from webapp.jobs.texts import fit

MOST = 200
"""Shown of one job, the newest."""
WORDS = {"training": "training", "evaluating": "evaluating", "predicting": "predicting", "saving": "saving"}
ASKED = {State.PAUSING: "Pause", State.STOPPING: "Stop"}


def note(job_id: int, state: str, *, at: datetime, detail: str = "") -> None:
    """Keep a change of the job's state; called with the change, in its transaction."""
    Change.objects.create(job_id=job_id, state=state, time=at, detail=fit(detail, 1000))


def note_phases(attempt: Attempt, phases: Iterable[tuple[str, datetime]]) -> None:
    """Keep when an attempt first came to each of these phases: epochs may alternate between two of them for days."""
    rows = [Change(job_id=attempt.job_id, attempt=attempt, phase=phase, time=time) for phase, time in phases]
    Change.objects.bulk_create(rows, ignore_conflicts=True)


def told(job: Job) -> list[dict[str, Any]]:
    """The history as it crosses to the browser: `time`, `text` and the state whose colour it has."""
    newest = list(job.changes.order_by("-time", "-pk")[:MOST])
    changes = [{"time": each.time.isoformat(), "text": _text(each), "kind": each.state} for each in reversed(newest)]
    submitted = {
        "time": job.created.isoformat(),
        "text": f"Submitted by {job.owner.get_username()}",
        "kind": str(State.QUEUED),
    }
    return [submitted, *changes]


def _text(change: Change) -> str:
    if change.phase:
        words = WORDS.get(change.phase) or SENTENCES.get(change.phase) or change.phase
        return words[:1].upper() + words[1:]
    match State(change.state):
        case State.QUEUED:
            return f"Resumed {change.detail}"
        case State.STARTING:
            return f"Sent to {change.detail}" if change.detail else "Sent to its hosts"
        case State.PAUSING | State.STOPPING as state:
            return (
                f"{ASKED[state]} asked for by {change.detail}"
                if change.detail
                else "One host has failed, ending the others"
            )
        case state:
            return f"{state.label}: {change.detail}" if change.detail else state.label
