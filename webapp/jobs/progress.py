"""Applies what hosts tell to the job's row: position, newest values, phases, and the end.

Ingest calls `apply` many times a second inside its own transaction, so a batch of points costs one read and one UPDATE.
Points, artifacts and facts of processes are welcome after the attempt has ended; changes of state are not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from webapp.jobs import checkpoints, conclusion, history, processes, transitions
from webapp.jobs.figures import extend_spark, finite, jsonable
from webapp.jobs.models import Attempt, Job
from webapp.jobs.moments import moment
from webapp.jobs.states import ACTIVE, State
from webapp.jobs.texts import fit
from workers.contract import events as ev

SERIES_LIMIT = 500
"""Newest values kept on the row; a plugin that invents names without end must not make it grow without end."""


def apply(*, attempt: Attempt, process: str, events: Iterable[ev.Event]) -> bool:
    """Apply the events of one process (or of `supervisor@<host>`), in order; the caller commits.

    True when something that a page shows has changed.
    """
    batch = list(events)
    if not batch:
        return False
    with transaction.atomic(savepoint=False):
        fresh = _locked(attempt.pk)
        return _Update(fresh, process).run(batch)


def _locked(attempt_id: int) -> Attempt:
    """The attempt with its job, the job's row locked: several ingest processes may hold words of one job."""
    return (
        Attempt.objects.select_related("job")
        .defer("assignment", "job__spec_json", "job__log_tail")
        .select_for_update(of=("job",))
        .get(pk=attempt_id)
    )


class _Update:
    """One call of `apply`: collects the columns that change, then writes them at once."""

    def __init__(self, attempt: Attempt, process: str) -> None:
        self.attempt, self.job, self.process = attempt, attempt.job, process
        self.fields: dict[str, Any] = {}
        self.phases: dict[str, datetime] = {}
        self.changed = False

    def run(self, batch: Sequence[ev.Event]) -> bool:
        for event in batch:
            self._take(event)
        if self.fields:
            Job.objects.filter(pk=self.job.pk).update(**{**self.fields, "revision": F("revision") + 1})
            self.changed = True
        if self.phases:
            history.note_phases(self.attempt, self.phases.items())
        for event in batch:
            if isinstance(event, ev.Ended):
                self.changed |= conclusion.take(self.attempt, host=event.process.partition("@")[2], event=event)
        return self.changed

    def _take(self, event: ev.Event) -> None:
        match event:
            case ev.Points():
                self._points(event)
            case ev.Phase():
                self._phase(event)
            case ev.Started():
                self._started(event)
            case ev.Artifact():
                new = {"path": event.path, "bytes": event.bytes, "sha256": event.sha256, "time": event.time}
                self._artifact(event.name, new, fresh=True)
            case ev.CheckpointSaved() | ev.CheckpointDropped():
                self._checkpoint(event)
            case ev.Stored() | ev.NotStored():
                self._stored(event)
            case ev.Finished() if not self.superseded:
                self._latest(event.metrics)
                self._position(event.step, 0)
                if event.stopped_early:
                    self.fields["phase_detail"] = fit(event.stopped_early, 300)
            case ev.Failed() | ev.Spawned() | ev.Exited():
                self.changed |= processes.take(self.attempt, event)

    def _get(self, field: str) -> Any:
        return self.fields.get(field, getattr(self.job, field))

    @functools.cached_property
    def superseded(self) -> bool:
        """Whether the job has gone on without this attempt: what it still tells is no news of the job."""
        if self.attempt.ended is None:
            return False
        return self.job.state in ACTIVE or self.job.attempts.filter(pk__gt=self.attempt.pk).exists()

    def _artifact(self, name: str, facts: dict[str, Any], *, fresh: bool = False) -> None:
        """Facts of one artifact; a `fresh` one is a new file, which the store does not have yet."""
        known = {each["name"]: each for each in self._get("artifacts")}
        before = known.get(name, {})
        kept = {"stored": before.get("stored", False)} if fresh else before
        self.fields["artifacts"] = [
            *(each for each in known.values() if each["name"] != name),
            {"name": name, **kept, **facts},
        ]

    def _stored(self, event: ev.Stored | ev.NotStored) -> None:
        if event.kind == "checkpoint":
            self._checkpoint(event)
        elif isinstance(event, ev.Stored):
            self._artifact(event.name, {"stored": True, "bytes": event.bytes})
        else:
            self._artifact(
                event.name, {"stored": False, "host": event.host, "path": event.path, "problem": event.cause}
            )
        checkpoints.note_held(self.attempt, self.process.partition("@")[2], self._get("artifacts"))

    def _checkpoint(self, event: checkpoints.Told) -> None:
        checkpoints.take(self.attempt, event)
        if isinstance(event, ev.CheckpointSaved) and not self.superseded:
            self.fields["save_requested"] = None
        self.fields["revision"] = F("revision") + 1

    def _points(self, event: ev.Points) -> None:
        if self.superseded:
            return
        self._position(event.step, event.epoch)
        newest: dict[str, float] = {}
        for series in event.series:
            if series.replica is not None or not series.steps:
                continue
            newest[series.name] = series.values[-1]
            if series.name == "loss":
                pairs = zip(series.steps, series.values, strict=True)
                self.fields["spark"] = extend_spark(self._get("spark"), pairs)
                self._first_step(series.times[0])
        self._latest(newest)

    def _position(self, step: int, epoch: int) -> None:
        if step > self._get("step"):
            self.fields["step"] = step
        if epoch > self._get("epoch"):
            self.fields["epoch"] = epoch

    def _latest(self, values: dict[str, float]) -> None:
        if not values:
            return
        latest = {**self._get("latest"), **{name: jsonable(value) for name, value in values.items()}}
        self.fields["latest"] = dict(list(latest.items())[:SERIES_LIMIT])
        for column in ("loss", "accuracy", "throughput"):
            if column in values:
                self.fields[column] = finite(values[column])

    def _first_step(self, seconds: float) -> None:
        for field in ("first_step", "attempt_first_step"):
            if self._get(field) is None:
                self.fields[field] = moment(seconds, after=self.job.started)

    def _phase(self, event: ev.Phase) -> None:
        self._heard(event)
        if self.attempt.ended is None and processes.is_chief(self.attempt, self.process):
            self.fields["phase"] = event.phase
            self.phases.setdefault(event.phase, moment(event.time, after=self.job.started))
            self.fields["phase_detail"] = fit(event.detail, 300)

    def _started(self, event: ev.Started) -> None:
        self._heard(event)
        if self.superseded:
            return
        self.fields |= {
            "segment": self.attempt.number,
            "started_info": event.model_dump(mode="json"),
            # A model that is split tells of each device; those that hold it together are one replica.
            "replicas": len({each.replica for each in event.replicas}),
            "total_steps": event.total_steps,
            "steps_per_epoch": event.steps_per_epoch,
            "global_batch": event.global_batch,
        }

    def _heard(self, event: ev.Phase | ev.Started) -> None:
        phase = event.phase if isinstance(event, ev.Phase) else "building"
        up = processes.enter(self.attempt, self.process, phase)
        if up is not None:
            self.fields["processes_up"] = up
        self.changed = True
        if self.attempt.ended is None and self.job.state == State.STARTING:
            at = moment(event.time, after=self.job.started)
            if transitions.run(self.job.pk, at=at):
                self.job.state = State.RUNNING
