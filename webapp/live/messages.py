"""What crosses to the browser, typed; numbers that are not finite are the strings "NaN", "Infinity", "-Infinity"."""

from __future__ import annotations

from typing import Literal

from workers.contract.base import Strict


class SeriesPart(Strict):
    """New points of one series; `start` is the index of the first one, `times` are seconds since 1970."""

    name: str
    replica: int | None
    start: int
    steps: list[int]
    times: list[float]
    values: list[float]


class PointsMessage(Strict):
    """A client that has `n` points drops the first n-start ones, and asks `/series` when start > n."""

    type: Literal["points"] = "points"
    job: int
    series: list[SeriesPart]


class Line(Strict):
    """One line of a log; `time` in seconds since 1970."""

    id: int
    process: str
    stream: str
    time: float
    text: str


class LogMessage(Strict):
    """Lines in the order of their ids; a client that has seen an id drops it."""

    type: Literal["log"] = "log"
    job: int
    lines: list[Line]


class GapMessage(Strict):
    """Messages were lost on the way: ask again for everything."""

    type: Literal["gap"] = "gap"


class BeatMessage(Strict):
    """The connection lives; `time` in seconds since 1970 by the server's clock."""

    type: Literal["beat"] = "beat"
    time: float


class Curve(Strict):
    """One series as `/jobs/<id>/series` answers it; `start` is the index of its first point where `since` asked."""

    name: str
    replica: int | None
    count: int
    start: int
    steps: list[int]
    times: list[float]
    values: list[float]
    thinned: bool


class SeriesAnswer(Strict):
    job: int
    series: list[Curve]


class LogsAnswer(Strict):
    """`first` and `last` are the ids at the ends of `lines` (None when empty); `more` says that others match beyond."""

    lines: list[Line]
    first: int | None
    last: int | None
    more: bool
