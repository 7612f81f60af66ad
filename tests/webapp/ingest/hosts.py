"""A training host as ingest sees it: files that grow, sent as byte ranges until they are committed."""

from __future__ import annotations

import time

import redis

from webapp.ingest.consume import Ingest
from webapp.jobs.models import Job
from webapp.metrics import store
from workers.contract import events as ev
from workers.contract.wire import EVENTS, Chunk, attempt_key


class Host:
    """The files of one attempt and a shipper that resends from the committed length."""

    def __init__(self, client: redis.Redis, attempt: int) -> None:
        self.client = client
        self.attempt = attempt
        self.files: dict[str, bytes] = {}

    def write(self, source: str, data: bytes) -> None:
        self.files[source] = self.files.get(source, b"") + data

    def tell(self, *events: ev.Event, source: str = "events/worker-0") -> None:
        for event in events:
            self.write(source, ev.to_line(event))

    def committed(self, source: str) -> int:
        return int(self.client.hget(attempt_key(self.attempt), source) or 0)

    def send(self, source: str, start: int, end: int) -> None:
        data = self.files[source][start:end]
        self.client.xadd(EVENTS, Chunk(self.attempt, source, start, data, 1.75e9).fields())

    def ship(self, size: int = 1000) -> bool:
        """Send everything behind what is committed; False when nothing was left to send."""
        open_ = {source: self.committed(source) for source in self.files}
        open_ = {source: start for source, start in open_.items() if start < len(self.files[source])}
        for source, start in open_.items():
            for offset in range(start, len(self.files[source]), size):
                self.send(source, offset, offset + size)
        return bool(open_)


def points(first: int, last: int, **series: list[float]) -> ev.Points:
    """Points of the steps first .. last - 1; without `series` a loss of 1 / step."""
    steps = list(range(first, last))
    given = series or {"loss": [1.0 / (step + 1) for step in steps]}
    return ev.Points(
        time=time.time(),
        process="worker-0",
        step=steps[-1],
        epoch=1,
        series=[
            ev.SeriesPoints(name=name, steps=steps, times=[1.75e9 + step for step in steps], values=values)
            for name, values in given.items()
        ],
    )


def drain(ingest: Ingest) -> None:
    while ingest.once(block_ms=20):
        pass


def curve(job: Job, name: str = "loss") -> store.Curve:
    (found,) = store.read(job.pk, names=[name], points=None)
    return found
