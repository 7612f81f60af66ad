"""One batch of chunks becomes rows in one transaction: the only place where all of a host's words meet.

Whatever arrives twice, late or cut anywhere changes nothing but the row of its source; what cannot be read is kept as a
log line of its process, and never stands in the way of the rest.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone
from pydantic import ValidationError

from webapp.ingest.lines import Cut, Piece, flush, split, text_of
from webapp.ingest.models import LogLine, Source
from webapp.ingest.sources import Origin, fit, origin
from webapp.jobs import progress
from webapp.jobs.models import Attempt, Job
from webapp.live.feed import News
from webapp.live.messages import Line, LogMessage, PointsMessage, SeriesPart
from webapp.metrics import store
from workers.contract.events import Event, Points, Started, parse_event
from workers.contract.problems import shorten
from workers.contract.wire import Chunk

FLUSH_AFTER = timedelta(seconds=2)
"""A line without its newline (a prompt, a progress bar) is shown after so long."""
LONGEST_EVENT = 16 * 1024 * 1024

log = logging.getLogger(__name__)


@dataclasses.dataclass
class Outcome:
    """What a committed batch did: `committed` bytes by attempt and source, what to tell, and what must wait.

    `ahead` are chunks whose predecessors are not here yet; `unknown` are those of attempts that do not exist.
    """

    committed: dict[tuple[int, str], int] = dataclasses.field(default_factory=dict)
    news: list[News] = dataclasses.field(default_factory=list)
    ahead: list[Chunk] = dataclasses.field(default_factory=list)
    unknown: list[Chunk] = dataclasses.field(default_factory=list)
    faults: int = 0


@transaction.atomic
def take(chunks: Sequence[Chunk], *, careful: bool = False) -> Outcome:
    """Store what is new in `chunks`, in their order.

    `careful` gives each event a savepoint and leaves out those that the database refuses.
    """
    outcome = Outcome()
    attempts = _locked({chunk.attempt for chunk in chunks})
    sources = {(row.attempt_id, row.name): row for row in Source.objects.filter(attempt__in=attempts)}
    jobs: dict[int, _JobBatch] = {}
    touched: dict[tuple[int, str], Source] = {}
    for chunk in chunks:
        attempt = attempts.get(chunk.attempt)
        if attempt is None:
            outcome.unknown.append(chunk)
            continue
        key = chunk.attempt, chunk.source
        source = sources.setdefault(key, Source(attempt=attempt, name=chunk.source))
        data = fit(source.committed, chunk)
        if data is None:
            outcome.ahead.append(chunk)
        elif data:
            touched[key] = source
            source.committed += len(data)
            jobs.setdefault(attempt.job_id, _JobBatch(attempt.job)).add(attempt, source, data, chunk.time)
        outcome.committed[key] = source.committed
    _finish(jobs.values(), outcome, careful)
    _save(touched.values())
    return outcome


@transaction.atomic
def give_up(chunk: Chunk) -> Outcome:
    """Pass a chunk by whose content the database refuses even piece by piece; a log line says so."""
    outcome = Outcome()
    attempt = _locked({chunk.attempt}).get(chunk.attempt)
    if attempt is None:
        return outcome
    source, _ = Source.objects.get_or_create(attempt=attempt, name=chunk.source)
    data = fit(source.committed, chunk)
    if data:
        source.committed += len(data)
        job = _JobBatch(attempt.job)
        job.fault(attempt, origin(chunk.source), chunk.time, f"{len(data)} bytes of {chunk.source} could not be stored")
        _finish([job], outcome, False)
        _save([source])
    outcome.committed[chunk.attempt, chunk.source] = source.committed
    return outcome


@transaction.atomic
def flush_waiting() -> list[News]:
    """Show the beginnings of lines whose newline has not come."""
    due = timezone.now() - FLUSH_AFTER
    waiting = Source.objects.filter(held_since__lt=due).values_list("attempt", flat=True)[:1000]
    attempts = _locked(set(waiting))
    jobs: dict[int, _JobBatch] = {}
    sources = list(Source.objects.filter(attempt__in=attempts, held_since__lt=due))
    for source in sources:
        attempt = attempts[source.attempt_id]
        job = jobs.setdefault(attempt.job_id, _JobBatch(attempt.job))
        seconds = source.held_since.timestamp() if source.held_since else 0.0
        job.cut(attempt, source, origin(source.name), flush(bytes(source.held)), seconds)
    outcome = Outcome()
    _finish(jobs.values(), outcome, False)
    _save(sources)
    return outcome.news


def _locked(pks: set[int]) -> dict[int, Attempt]:
    """The attempts that exist. Their jobs are locked, so that two ingest processes do not interleave one job's rows."""
    if not pks:
        return {}
    slim = Attempt.objects.filter(pk__in=pks).defer("assignment")
    jobs = {attempt.job_id for attempt in slim.only("job_id")}
    list(Job.objects.filter(pk__in=jobs).order_by("pk").select_for_update().values_list("pk", flat=True))
    full = slim.select_related("job").defer("assignment", "job__spec_json", "job__log_tail")
    return {attempt.pk: attempt for attempt in full}


class _Told(NamedTuple):
    """An event, and the points in it."""

    event: Event
    batches: list[store.Batch]


class _JobBatch:
    """What one batch brings to one job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.events: dict[tuple[int, str], tuple[Attempt, list[_Told]]] = {}
        self.lines: list[LogLine] = []
        self.faults = 0

    def add(self, attempt: Attempt, source: Source, data: bytes, seconds: float) -> None:
        where = origin(source.name)
        if where.stream == "events":
            self._events(attempt, source, where, data, seconds)
        else:
            self.cut(attempt, source, where, split(bytes(source.held), source.shown, data), seconds)

    def cut(self, attempt: Attempt, source: Source, where: Origin, cut: Cut, seconds: float) -> None:
        for piece in cut.pieces:
            self._line(attempt, where, seconds, piece)
        since = source.held_since if source.held and not cut.pieces else timezone.now()
        source.held, source.shown = cut.held, cut.shown
        source.held_since = since if cut.held else None

    def fault(self, attempt: Attempt, where: Origin, seconds: float, what: str) -> None:
        self.faults += 1
        log.error("job %s, attempt %s, %s: %s", self.job.pk, attempt.pk, where.process, what)
        where = Origin(where.process, "stderr")
        self._line(attempt, where, seconds, Piece(f"[lockstep] {what}", False))

    def _line(self, attempt: Attempt, where: Origin, seconds: float, piece: Piece) -> None:
        row = LogLine(job=self.job, attempt=attempt.pk, process=where.process, stream=where.stream, time=seconds)
        row.text, row.partial = piece
        self.lines.append(row)

    def _events(self, attempt: Attempt, source: Source, where: Origin, data: bytes, seconds: float) -> None:
        *lines, rest = (bytes(source.held) + data).split(b"\n")
        if len(rest) > LONGEST_EVENT:
            lines, rest = [*lines, rest], b""
        source.held = rest
        _, events = self.events.setdefault((attempt.pk, where.process), (attempt, []))
        for line in lines:
            try:
                event = parse_event(line)
                told = _Told(event, _batches(attempt, event) if isinstance(event, Points) else [])
            except ValueError as error:  # pydantic's ValidationError is one
                what = f"an event could not be read: {_first(error)}: {shorten(text_of(line[:400]), 200)}"
                self.fault(attempt, where, seconds, what)
            else:
                events.append(told)


def _first(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        detail = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}".removeprefix(": ")
    return str(error)


def _finish(jobs: Iterable[_JobBatch], outcome: Outcome, careful: bool) -> None:
    for job in sorted(jobs, key=lambda each: each.job.pk):
        parts, changed = _apply_all(job, careful)
        lines = [_told(row) for row in LogLine.objects.bulk_create(job.lines)]
        outcome.faults += job.faults
        outcome.news.append(
            News(
                job=job.job.pk,
                team=job.job.team_id,
                points=PointsMessage(job=job.job.pk, series=parts) if parts else None,
                lines=LogMessage(job=job.job.pk, lines=lines) if lines else None,
                changed=changed,
            )
        )


def _apply_all(job: _JobBatch, careful: bool) -> tuple[list[SeriesPart], bool]:
    parts: list[SeriesPart] = []
    changed = False
    # Supervisors last: their end of an attempt comes after the words of its processes.
    for (_, process), (attempt, events) in sorted(job.events.items(), key=lambda item: "@" in item[0][1]):
        for group in [[each] for each in events] if careful else [events]:
            try:
                with transaction.atomic(savepoint=careful):
                    new, news = _apply(attempt, process, group)
            except (OperationalError, InterfaceError):
                raise
            except Exception as error:
                if not careful:
                    raise
                log.exception("an event is left out")
                first = group[0].event
                what = f"a {first.type} event could not be stored: {shorten(str(error), 200)}"
                job.fault(attempt, Origin(process, "stderr"), first.time, what)
            else:
                parts += new
                changed |= news
    return parts, changed


def _apply(attempt: Attempt, process: str, told: list[_Told]) -> tuple[list[SeriesPart], bool]:
    batches = [each for one in told for each in one.batches]
    if attempt.resume_step is not None and any(isinstance(one.event, Started) for one in told):
        store.take_over(attempt.job_id, segment=attempt.number, step=attempt.resume_step)
    starts = store.append(batches) if batches else []
    parts = [_part(each, start) for each, start in zip(batches, starts, strict=True)]
    return parts, progress.apply(attempt=attempt, process=process, events=[one.event for one in told])


def _batches(attempt: Attempt, event: Points) -> list[store.Batch]:
    return [
        store.batch(
            owner=attempt.job_id,
            name=series.name,
            replica=series.replica,
            segment=attempt.number,
            steps=series.steps,
            times=series.times,
            values=series.values,
        )
        for series in event.series
        if series.steps or series.times or series.values
    ]


def _part(each: store.Batch, start: int) -> SeriesPart:
    return SeriesPart(
        name=each.key.name,
        replica=each.key.replica,
        start=start,
        steps=each.points.steps.tolist(),
        times=each.points.times.tolist(),
        values=each.points.values.tolist(),
    )


def _told(row: LogLine) -> Line:
    return Line(id=row.pk, process=row.process, stream=row.stream, time=row.time, text=row.text)


def _save(sources: Iterable[Source]) -> None:
    Source.objects.bulk_create(
        [
            Source(
                attempt_id=row.attempt_id,
                name=row.name,
                committed=row.committed,
                held=row.held,
                held_since=row.held_since,
                shown=row.shown,
            )
            for row in sources
        ],
        update_conflicts=True,
        unique_fields=["attempt", "name"],
        update_fields=["committed", "held", "held_since", "shown"],
    )
