"""Reading curves: whole, zoomed, thinned, of one owner or of hundreds at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
from django.db.models import Min, QuerySet

from webapp.metrics.codec import Floats, Ints, decode_floats, decode_ints
from webapp.metrics.models import WHOLE, Block, Series, Takeover
from webapp.metrics.points import Key, Points
from webapp.metrics.thinning import FEWEST, thin


class _Any:
    """Every replica, and the whole."""


ANY: Final = _Any()
Replica = int | _Any | None
MOST_SINCE = 100_000
"""Points of one series that `read_since` answers at once; who needs more asks again."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """What was read of one series: `count` is how many points it holds in all, `start` the first one's index.

    `steps` (int64), `times` (seconds since 1970) and `values` are arrays of one length; `thinned` says that points
    between them were left out. `start` has a meaning only for what `read_since` answers.
    """

    key: Key
    count: int
    start: int
    steps: Ints
    times: Floats
    values: Floats
    thinned: bool


class _Part(NamedTuple):
    """A block as read from the database."""

    series: int
    start: int
    segment: int
    size: int
    steps: bytes
    times: bytes
    values: bytes

    def points(self) -> Points:
        times = decode_ints(self.times, self.size) / 1000.0
        return Points(decode_ints(self.steps, self.size), times, decode_floats(self.values, self.size))


def counts(owner: int) -> dict[Key, int]:
    """How many points each series of `owner` holds."""
    return {Key.of(series): series.count for series in Series.objects.filter(owner=owner)}


def read(
    owner: int,
    *,
    names: Collection[str] | None = None,
    replica: Replica = ANY,
    first: int | None = None,
    last: int | None = None,
    points: int | None = 2000,
) -> list[Curve]:
    """The curves of one owner in the order of name and replica; see `overview`."""
    return overview([owner], names=names, replica=replica, first=first, last=last, points=points)


def overview(
    owners: Iterable[int],
    *,
    names: Collection[str] | None = None,
    replica: Replica = ANY,
    first: int | None = None,
    last: int | None = None,
    points: int | None = 2000,
) -> list[Curve]:
    """The curves of many owners in four queries, each of at most `points` points (None: all of them).

    `first` and `last` limit the steps, both included. Where a later segment begins at an earlier step, only what
    survived is shown: the older segment up to there, then the newer one.
    """
    series = series_of(owners, names, replica)
    cuts = cutoffs(series)
    blocks = Block.objects.filter(series__in=list(series))
    if first is not None:
        blocks = blocks.filter(last_step__gte=first)
    if last is not None:
        blocks = blocks.filter(first_step__lte=last)
    parts = _parts(blocks.order_by("series", "segment", "start"))
    curves = []
    for pk, row in series.items():
        whole = Points.joined([_kept(part, cuts, first, last) for part in parts.get(pk, ())])
        curves.append(_curve(row, whole, points))
    return curves


def read_since(owner: int, since: Mapping[tuple[str, int | None], int]) -> list[Curve]:
    """Of each named series the points from that index on, in the order they came, unthinned, at most MOST_SINCE."""
    rows = series_of([owner], {name for name, _ in since}, ANY)
    wanted = {pk: since[row_key.name, row_key.replica] for pk, row_key in _keys(rows) if row_key[1:] in since}
    blocks = Block.objects.none()
    for pk, index in wanted.items():
        # A block holds at most 4,096 points, so one that reaches beyond `index` cannot begin much before it.
        blocks = blocks | Block.objects.filter(series=pk, start__gt=index - 4096, start__lt=index + MOST_SINCE)
    parts = _parts(blocks.order_by("series", "start"))
    curves = []
    for pk, index in wanted.items():
        mine = [part for part in parts.get(pk, ()) if part.start + part.size > index]
        start = max(index, mine[0].start) if mine else rows[pk].count
        found = Points.joined([part.points() for part in mine])
        begin = start - mine[0].start if mine else 0
        found = found.take(slice(begin, begin + MOST_SINCE))
        curves.append(_answer(rows[pk], start, found, False))
    return curves


def series_of(owners: Iterable[int], names: Collection[str] | None, replica: Replica) -> dict[int, Series]:
    """The rows asked for by primary key, in the order of owner, name and replica."""
    found = Series.objects.filter(owner__in=list(owners))
    if names is not None:
        found = found.filter(name__in=list(names))
    if not isinstance(replica, _Any):
        found = found.filter(replica=WHOLE if replica is None else replica)
    return {series.pk: series for series in found.order_by("owner", "name", "replica")}


def cutoffs(series: Mapping[int, Series]) -> dict[tuple[int, int], int]:
    """By series and segment the step from which on a later segment took over; absent where none did.

    A segment took over where it begins, and where `taken_over` says, even for series that it has no point of yet.
    """
    begins = Block.objects.filter(series__in=list(series)).values_list("series", "segment")
    found: dict[int, dict[int, int]] = {}
    for pk, segment, begin in begins.annotate(begin=Min("first_step")):
        found.setdefault(pk, {})[segment] = begin
    said = _takeovers({row.owner for row in series.values()})
    cuts: dict[tuple[int, int], int] = {}
    for pk, own in found.items():
        begin = _earliest(own, said.get(series[pk].owner, {}))
        lowest: int | None = None
        for segment in sorted(begin, reverse=True):
            if lowest is not None:
                cuts[pk, segment] = lowest
            lowest = begin[segment] if lowest is None else min(lowest, begin[segment])
    return cuts


def _takeovers(owners: set[int]) -> dict[int, dict[int, int]]:
    """By owner and segment the first step that is the segment's own."""
    found: dict[int, dict[int, int]] = {}
    for owner, segment, step in Takeover.objects.filter(owner__in=owners).values_list("owner", "segment", "step"):
        found.setdefault(owner, {})[segment] = step + 1
    return found


def _earliest(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    both = (*one.items(), *other.items())
    return {segment: min(step for key, step in both if key == segment) for segment, _ in both}


def _keys(rows: Mapping[int, Series]) -> list[tuple[int, Key]]:
    return [(pk, Key.of(row)) for pk, row in rows.items()]


def _parts(blocks: QuerySet[Block]) -> dict[int, list[_Part]]:
    found: dict[int, list[_Part]] = {}
    for row in blocks.values_list("series_id", "start", "segment", "count", "steps", "times", "values"):
        part = _Part._make(row)
        found.setdefault(part.series, []).append(part)
    return found


def _kept(part: _Part, cuts: dict[tuple[int, int], int], first: int | None, last: int | None) -> Points:
    points = part.points()
    cut = cuts.get((part.series, part.segment))
    if cut is not None:
        points = points.take(np.flatnonzero(points.steps < cut))
    if first is not None:
        points = points.take(np.flatnonzero(points.steps >= first))
    if last is not None:
        points = points.take(np.flatnonzero(points.steps <= last))
    return points


def _curve(series: Series, points: Points, limit: int | None) -> Curve:
    thinned = limit is not None and points.size > max(limit, FEWEST)
    if limit is not None and thinned:
        points = points.take(thin(points.values, limit))
    return _answer(series, 0, points, thinned)


def _answer(series: Series, start: int, points: Points, thinned: bool) -> Curve:
    return Curve(Key.of(series), series.count, start, points.steps, points.times, points.values, thinned)
