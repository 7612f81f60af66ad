"""Numbers on a job's row: non-finite ones as the strings that JSON knows, and the thinned loss for the sparkline."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
Figure = float | str
SPARK_LENGTH = 80


def jsonable(value: float) -> Figure:
    """`value`, or "NaN", "Infinity", "-Infinity": JSON has no word for them, and a NaN is news."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def finite(value: float) -> float | None:
    """`value` where a column can sort it, else None."""
    return value if math.isfinite(value) else None


def extend_spark(spark: list[list[Figure]], pairs: Iterable[tuple[int, float]]) -> list[list[Figure]]:
    """`spark` with newer (step, value) pairs: at most SPARK_LENGTH, evenly spaced, the newest always the last.

    Whenever it is full every second pair goes, so the spacing doubles; a pair closer to its forerunner than the spacing
    is provisional and gives way to the next.
    """
    kept = [list(pair) for pair in spark]
    for step, value in pairs:
        if kept and step <= float(kept[-1][0]):
            continue
        if len(kept) > 2 and float(kept[-1][0]) - float(kept[-2][0]) < float(kept[1][0]) - float(kept[0][0]):
            kept.pop()
        kept.append([step, jsonable(value)])
        if len(kept) > SPARK_LENGTH:
            kept = [*kept[:-1:2], kept[-1]]
    return kept


def thin(values: list[T], length: int) -> list[T]:
    """At most `length` of `values`, evenly picked, first and last kept."""
    if len(values) <= length:
        return values
    return [values[round(i * (len(values) - 1) / (length - 1))] for i in range(length)]
