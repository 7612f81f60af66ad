"""The figures of whole curves, from the plain columns of their blocks: points stay closed unless a restart cut them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from typing import Literal

from webapp.metrics.models import Block
from webapp.metrics.points import Key
from webapp.metrics.reading import ANY, Replica, cutoffs, series_of
from webapp.metrics.writing import block_of, points_of

_PLAIN = ("id", "series", "segment", "count", "first_step", "last_step", "last", "min", "min_step", "max", "max_step")


@dataclasses.dataclass(frozen=True)
class Summary:
    """Figures of the surviving history; extremes and mean are over finite values, None where there are none.

    `last` is NaN where the newest value is no number.
    """

    key: Key
    count: int
    last: float
    last_step: int
    min: float | None
    min_step: int | None
    max: float | None
    max_step: int | None
    mean: float | None

    def best(self, better: Literal["min", "max"] | None) -> tuple[float, int] | None:
        """The best value and its step; None where neither end of the scale wins or nothing is finite."""
        if better == "min" and self.min is not None and self.min_step is not None:
            return self.min, self.min_step
        if better == "max" and self.max is not None and self.max_step is not None:
            return self.max, self.max_step
        return None


def summaries(
    owners: Iterable[int], *, names: Collection[str] | None = None, replica: Replica = ANY
) -> dict[Key, Summary]:
    """A Summary of every series that holds points, in four queries."""
    series = series_of(owners, names, replica)
    cuts = cutoffs(series)
    blocks: dict[int, list[Block]] = {}
    rows = Block.objects.filter(series__in=list(series)).defer("steps", "times", "values")
    for block in rows.order_by("series", "segment", "start"):
        kept = _surviving(block, cuts.get((block.series_id, block.segment)))
        if kept is not None:
            blocks.setdefault(block.series_id, []).append(kept)
    return {Key.of(series[pk]): _summary(Key.of(series[pk]), mine) for pk, mine in blocks.items()}


def _surviving(block: Block, cut: int | None) -> Block | None:
    if cut is None or block.last_step < cut:
        return block
    if block.first_step >= cut:
        return None
    points = points_of(block)
    kept = points.take((points.steps < cut).nonzero()[0])
    return block_of(block.series_id, block.start, block.segment, kept, packed=False)


def _summary(key: Key, blocks: list[Block]) -> Summary:
    lows = [(block.min, block.min_step) for block in blocks if block.min is not None]
    highs = [(block.max, block.max_step) for block in blocks if block.max is not None]
    low, low_step = min(lows, default=(None, None))
    high, high_step = max(highs, key=lambda pair: pair[0], default=(None, None))
    end = blocks[-1]
    finite = sum(block.finite for block in blocks)
    sums = [block.sum for block in blocks]
    mean = None if not finite or None in sums else sum(part or 0.0 for part in sums) / finite
    return Summary(
        key=key,
        count=sum(block.count for block in blocks),
        last=float("nan") if end.last is None else end.last,
        last_step=end.last_step,
        min=low,
        min_step=low_step,
        max=high,
        max_step=high_step,
        mean=mean,
    )
