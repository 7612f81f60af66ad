"""Points of a series as arrays, and the check at the store's door."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from webapp.metrics.codec import Floats, Ints
from webapp.metrics.models import WHOLE, Series

MAX_TIME = 2.0**42
"""Seconds; anything later is no time but a mistake, and would not fit the milliseconds' column exactly."""


class Key(NamedTuple):
    """A series; `replica` is None for what concerns the owner as a whole."""

    owner: int
    name: str
    replica: int | None = None

    @classmethod
    def of(cls, series: Series) -> Key:
        return cls(series.owner, series.name, None if series.replica == WHOLE else series.replica)


class Points(NamedTuple):
    """Three arrays of one length, oldest first; times are seconds since 1970, kept to the millisecond."""

    steps: Ints
    times: Floats
    values: Floats

    def take(self, which: slice | npt.NDArray[np.int64]) -> Points:
        """Those at the given places."""
        return Points(self.steps[which], self.times[which], self.values[which])

    @classmethod
    def joined(cls, parts: Sequence[Points]) -> Points:
        """All parts, one after another."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return NOTHING
        return cls(
            np.concatenate([part.steps for part in parts]),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.values for part in parts]),
        )

    @property
    def size(self) -> int:
        return len(self.steps)


NOTHING = Points(np.empty(0, np.int64), np.empty(0, np.float64), np.empty(0, np.float64))


@dataclasses.dataclass(frozen=True)
class Batch:
    """New points of one series; `segment` grows when what is measured was restarted."""

    key: Key
    segment: int
    points: Points


def batch(
    *,
    owner: int,
    name: str,
    replica: int | None = None,
    segment: int = 1,
    steps: Sequence[int],
    times: Sequence[float],
    values: Sequence[float],
) -> Batch:
    """A checked Batch.

    Raises ValueError naming the field when the lengths differ or a number is outside what the store can hold.
    """
    if not len(steps) == len(times) == len(values):
        raise ValueError(f"series {name[:80]!r}: {len(steps)} steps, {len(times)} times and {len(values)} values")
    if not name or len(name) > 100 or "\x00" in name:
        raise ValueError(f"name: must have 1 to 100 characters and no NUL, got {name[:80]!r}")
    if replica is not None and not 0 <= replica < 2**31:
        raise ValueError(f"replica: must be between 0 and 2147483647, got {replica}")
    try:
        points = Points(np.array(steps, np.int64), np.array(times, np.float64), np.array(values, np.float64))
    except OverflowError:
        raise ValueError(f"series {name!r}: a step does not fit into 64 bits") from None
    if not bool((np.abs(points.times) < MAX_TIME).all()):
        raise ValueError(f"times: series {name!r} holds one that is no time in seconds since 1970")
    return Batch(Key(owner, name, replica), segment, points)
