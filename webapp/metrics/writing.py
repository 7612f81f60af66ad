"""Appending to many series at once: a short tail is rewritten, and packed into blocks of 4,096 points as it grows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from django.db import transaction

from webapp.metrics.codec import decode_floats, decode_ints, encode_floats, encode_ints
from webapp.metrics.models import WHOLE, Block, Series
from webapp.metrics.points import Batch, Key, Points

BLOCK = 4096
TAIL = 512
"""A tail this long is packed. Rewriting it costs a few kilobytes, where rewriting a block would cost a hundred."""
_FIGURES = [field.name for field in Block._meta.concrete_fields if field.name not in {"id", "series", "start"}]


@transaction.atomic
def append(batches: Iterable[Batch]) -> list[int]:
    """Add points behind what each series holds, and say at which index each (non-empty) batch now begins.

    The number of queries does not depend on the number of batches. Two writers of one series wait for each other.
    """
    given = list(batches)
    series = _series({each.key for each in given if each.points.size})
    tails = {block.series_id: block for block in Block.objects.filter(series__in=series.values(), packed=False)}
    starts: list[int] = []
    runs: dict[Key, list[Batch]] = {}
    lengths = {key: row.count for key, row in series.items()}
    for each in given:
        starts.append(lengths.get(each.key, 0))
        if each.points.size:
            lengths[each.key] += each.points.size
            runs.setdefault(each.key, []).append(each)
    writes = _Writes(series, tails)
    for key, parts in runs.items():
        for run in _by_segment(parts):
            writes.add(series[key], run)
    writes.save()
    return starts


def _series(keys: set[Key]) -> dict[Key, Series]:
    """The rows, locked; those that were missing are created."""
    rows = _locked(keys)
    missing = keys - rows.keys()
    if not missing:
        return rows
    new = [Series(owner=k.owner, name=k.name, replica=WHOLE if k.replica is None else k.replica) for k in missing]
    Series.objects.bulk_create(new, ignore_conflicts=True)
    return _locked(keys)


def _locked(keys: set[Key]) -> dict[Key, Series]:
    found = Series.objects.filter(owner__in={key.owner for key in keys}, name__in={key.name for key in keys})
    rows = {Key.of(series): series for series in found.select_for_update().order_by("pk")}
    return {key: rows[key] for key in keys if key in rows}


def _by_segment(parts: Sequence[Batch]) -> list[Batch]:
    """Neighbours of one segment as one batch."""
    runs: list[list[Batch]] = []
    for part in parts:
        if runs and runs[-1][0].segment == part.segment:
            runs[-1].append(part)
        else:
            runs.append([part])
    return [Batch(run[0].key, run[0].segment, Points.joined([part.points for part in run])) for run in runs]


class _Writes:
    """What one call of `append` changes, gathered so that it takes a handful of statements."""

    def __init__(self, series: dict[Key, Series], tails: dict[int, Block]) -> None:
        self._series = list(series.values())
        self._tails = tails
        self._stored = {series: block.pk for series, block in tails.items()}
        self._changed: dict[tuple[int, int], Block] = {}
        self._merged: list[int] = []
        self._last_packed: dict[int, Block | None] | None = None

    def add(self, series: Series, run: Batch) -> None:
        tail = self._tails.get(series.pk)
        if tail is not None and tail.segment != run.segment:
            self._pack(series, tail.segment, tail.start, points_of(tail))
            tail = None
        start = series.count if tail is None else tail.start
        points = run.points if tail is None else Points.joined([points_of(tail), run.points])
        series.count += run.points.size
        if points.size < TAIL:
            block = block_of(series.pk, start, run.segment, points, packed=False)
            self._tails[series.pk] = self._changed[series.pk, start] = block
        else:
            self._pack(series, run.segment, start, points)

    def _pack(self, series: Series, segment: int, start: int, points: Points) -> None:
        """Join the points to the last packed block of their segment, and begin new ones where it is full."""
        self._tails.pop(series.pk, None)
        stored, before = self._stored.pop(series.pk, None), self._growing(series.pk)
        if before is not None and before.segment == segment and before.start + before.count == start:
            self._changed.pop((series.pk, start), None)
            self._merged += [stored] if stored else []
            start, points = before.start, Points.joined([points_of(before), points])
        block = before
        for offset in range(0, points.size, BLOCK):
            part = points.take(slice(offset, offset + BLOCK))
            block = block_of(series.pk, start + offset, segment, part, packed=True)
            self._changed[series.pk, block.start] = block
        if self._last_packed is not None:
            self._last_packed[series.pk] = block

    def _growing(self, series: int) -> Block | None:
        if self._last_packed is None:
            ends = Block.objects.filter(series__in=self._series, packed=True, count__lt=BLOCK)
            self._last_packed = {}
            for end in ends.order_by("start"):
                self._last_packed[end.series_id] = end
        block = self._last_packed.get(series)
        return block if block is not None and block.count < BLOCK else None

    def save(self) -> None:
        if self._merged:
            Block.objects.filter(pk__in=self._merged).delete()
        Block.objects.bulk_create(
            self._changed.values(), update_conflicts=True, unique_fields=["series", "start"], update_fields=_FIGURES
        )
        Series.objects.bulk_create(
            [Series(owner=row.owner, name=row.name, replica=row.replica, count=row.count) for row in self._series],
            update_conflicts=True,
            unique_fields=["owner", "name", "replica"],
            update_fields=["count"],
        )


def points_of(block: Block) -> Points:
    """The block's points."""
    times = decode_ints(bytes(block.times), block.count) / 1000.0
    values = decode_floats(bytes(block.values), block.count)
    return Points(decode_ints(bytes(block.steps), block.count), times, values)


def block_of(series: int, start: int, segment: int, points: Points, *, packed: bool) -> Block:
    """A row for the points, its figures computed."""
    steps, values = points.steps, points.values
    finite = np.flatnonzero(np.isfinite(values))
    numbers = values[finite]
    block = Block(series_id=series, start=start, segment=segment, packed=packed, count=points.size)
    block.first_step, block.last_step = int(steps.min()), int(steps.max())
    block.first, block.last = _or_none(values[0]), _or_none(values[-1])
    block.finite = len(finite)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(numbers.sum())
    block.sum = total if math.isfinite(total) else None
    if len(finite):
        low, high = finite[numbers.argmin()], finite[numbers.argmax()]
        block.min, block.min_step = float(values[low]), int(steps[low])
        block.max, block.max_step = float(values[high]), int(steps[high])
    block.steps = encode_ints(steps, packed=packed)
    block.times = encode_ints(np.rint(points.times * 1000).astype(np.int64), packed=packed)
    block.values = encode_floats(values, packed=packed)
    return block


def _or_none(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)
