"""The table of a comparison: each job's final, best, lowest and highest value of each metric, the winners marked."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
from collections.abc import Mapping, Sequence

from django.utils import timezone

from webapp.jobs.models import Job
from webapp.jobs.phases import trained_seconds
from webapp.metrics import store
from workers.contract.metrics import Metric, metric

STATISTICS = ("final", "best", "min", "max")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclasses.dataclass(frozen=True)
class Figure:
    """One number; `value` is None where the job has none. `step` is where it was reached, `wins` against all others."""

    statistic: str
    value: float | None
    step: int | None = None
    wins: bool = False


@dataclasses.dataclass(frozen=True)
class Column:
    """One statistic of one metric; `number` counts the table's sortable columns, of which the first two are times."""

    number: int
    metric: Metric
    statistic: str

    @property
    def first(self) -> bool:
        """Whether it begins its metric's group."""
        return self.statistic == "final"

    @property
    def extreme(self) -> bool:
        """Whether it is folded away unless asked for."""
        return self.statistic in {"min", "max"}

    @property
    def better(self) -> str:
        """The end of the scale that sorting puts first."""
        return self.metric.better or "max"


@dataclasses.dataclass(frozen=True)
class Row:
    """One job: `seconds` is how long it has trained, `throughput` its mean in samples/s."""

    job: Job
    seconds: float | None
    throughput: float | None
    cells: tuple[tuple[Column, Figure], ...]


@dataclasses.dataclass(frozen=True)
class Table:
    """`metrics` head the groups of columns, four STATISTICS each."""

    metrics: tuple[tuple[str, Metric], ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


Summaries = Mapping[store.Key, store.Summary]


def table(jobs: Sequence[Job], names: Sequence[str], summaries: Summaries) -> Table:
    """The figures of `jobs` for the metrics `names`; `summaries` come from `metrics.store.summaries`."""
    groups = [_group(jobs, name, summaries) for name in names]
    metrics = tuple((name, metric(name)) for name in names)
    heads = itertools.product((one for _, one in metrics), STATISTICS)
    columns = tuple(Column(number, one, statistic) for number, (one, statistic) in enumerate(heads, start=2))
    rows = []
    for index, job in enumerate(jobs):
        figures = itertools.chain.from_iterable(group[index] for group in groups)
        cells = tuple(zip(columns, figures, strict=True))
        rows.append(Row(job, seconds(job), _mean(job, summaries), cells))
    return Table(metrics, columns, tuple(rows))


def seconds(job: Job) -> float | None:
    """How long `job` has trained, from its first step on and without its pauses; None before that, and for
    one that takes no steps."""
    if not job.trains:
        return None
    begin = job.first_step or job.started
    if job.attempt_first_step is None and not job.earlier_seconds and begin is not None:
        return max(0.0, ((job.ended or timezone.now()) - begin).total_seconds())
    return trained_seconds(job)


def as_csv(found: Table) -> str:
    """The table as a file for spreadsheets; cells that one would take for a formula begin with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ["job", "name", "state", "seconds", "mean throughput (samples/s)"]
    for name, one in found.metrics:
        unit = f" ({one.unit})" if one.unit else ""
        head += [f"{name} {statistic}{unit}" for statistic in STATISTICS]
    writer.writerow(head)
    for row in found.rows:
        plain: list[object] = [row.job.pk, _safe(row.job.name), row.job.state, row.seconds, row.throughput]
        writer.writerow(plain + [figure.value for _, figure in row.cells])
    return text.getvalue()


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text


def _mean(job: Job, summaries: Summaries) -> float | None:
    found = summaries.get(store.Key(job.pk, "throughput"))
    return found.mean if found else None


def _group(jobs: Sequence[Job], name: str, summaries: Summaries) -> list[list[Figure]]:
    """The four figures of each job for one metric."""
    better = metric(name).better
    found = [_figures(summaries.get(store.Key(job.pk, name)), name) for job in jobs]
    if better is None:
        return found
    for index in range(2):
        _mark(found, index, better)
    return found


def _figures(summary: store.Summary | None, name: str) -> list[Figure]:
    if summary is None:
        return [Figure(statistic, None) for statistic in STATISTICS]
    best = summary.best(metric(name).better)
    return [
        Figure("final", summary.last, summary.last_step),
        Figure("best", best[0], best[1]) if best else Figure("best", None),
        Figure("min", summary.min, summary.min_step),
        Figure("max", summary.max, summary.max_step),
    ]


def _mark(found: list[list[Figure]], index: int, better: str) -> None:
    values = [row[index].value for row in found]
    finite = [value for value in values if value is not None and math.isfinite(value)]
    # Where all are alike, or one stands alone, nobody has won.
    if len(finite) < 2 or min(finite) == max(finite):
        return
    winner = min(finite) if better == "min" else max(finite)
    for row in found:
        if row[index].value == winner:
            row[index] = dataclasses.replace(row[index], wins=True)
