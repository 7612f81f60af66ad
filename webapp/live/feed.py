"""Tells web processes what is newly in the database: a capped Redis Stream, read by `webapp/live/hub.py`.

Everything here is a hint. What is lost on the way is found again by counting points and line ids, so `tell` never
raises for a Redis that is away.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable

import redis
from redis.typing import EncodableT, FieldT

from webapp.live.messages import LogMessage, PointsMessage

STREAM = "lockstep:live"
LENGTH = 2_000
MOST_POINTS = 20_000
MOST_LINES = 1_000
"""More at once than a page can show: it is told of a gap instead, and asks for a thinned curve or the last lines."""

Fields = dict[FieldT, EncodableT]
log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class News:
    """What one commit changed of one job; `changed` when its row or page header did."""

    job: int
    team: int
    points: PointsMessage | None = None
    lines: LogMessage | None = None
    changed: bool = False


def tell(connection: redis.Redis, news: Iterable[News]) -> None:
    """Append to the live stream; to be called after the commit."""
    pipe = connection.pipeline(transaction=False)
    for each in news:
        if each.points is not None or each.lines is not None:
            pipe.xadd(STREAM, _fields(each), maxlen=LENGTH, approximate=True)
        if each.changed:
            entry: Fields = {"kind": "job", "job": each.job, "team": each.team}
            pipe.xadd(STREAM, entry, maxlen=LENGTH, approximate=True)
    try:
        pipe.execute()
    except redis.RedisError as error:
        log.warning("Redis is away, so news were stored but not told: %s", error)


def _fields(news: News) -> Fields:
    fields: Fields = {"kind": "news", "job": news.job, "team": news.team}
    points, lines = news.points, news.lines
    if points is not None and sum(len(part.steps) for part in points.series) > MOST_POINTS:
        points, fields["gap"] = None, 1
    if lines is not None and len(lines.lines) > MOST_LINES:
        lines, fields["gap"] = None, 1
    if points is not None:
        fields["points"] = points.model_dump_json()
    if lines is not None:
        fields["log"] = lines.model_dump_json()
    return fields
