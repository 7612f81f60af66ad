"""One reader of the live stream per web process: it fans out to the sockets through bounded queues."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Collection
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import redis.asyncio
from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from redis import RedisError

from webapp.jobs.models import Job
from webapp.jobs.presenting import job_message, row_message
from webapp.live.database import in_database
from webapp.live.feed import STREAM

QUEUE = 256
BLOCK_MS = 5_000
READY_SECONDS = 1.0
REFRESH_SECONDS = 0.25
ROW_SECONDS = 0.5
"""A job's row is sent at most this often, its page's header each REFRESH_SECONDS."""

log = logging.getLogger(__name__)


class Topic(NamedTuple):
    """What a socket listens to: points of a job, log of a job, header of a job, rows of a team."""

    kind: Literal["points", "log", "job", "row"]
    id: int


class Item(NamedTuple):
    """A message for the browser as JSON text, serialised once per process."""

    kind: Literal["points", "log", "job", "row"]
    job: int
    text: str


class Subscription:
    """A socket's bounded queue. When it overflows everything in it is dropped, and `gap` tells the browser to ask."""

    def __init__(self, topics: Collection[Topic]) -> None:
        self.topics = frozenset(topics)
        self._items: list[Item] = []
        self._gap = False
        self._filled = asyncio.Event()

    def put(self, item: Item) -> None:
        if len(self._items) >= QUEUE:
            self.lose()
        self._items.append(item)
        self._filled.set()

    def lose(self) -> None:
        """Mark that something did not arrive."""
        self._items.clear()
        self._gap = True
        self._filled.set()

    async def take(self, seconds: float) -> tuple[bool, list[Item]]:
        """Whether messages were lost, and all that wait; empty when nothing came within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._filled.wait()
        except TimeoutError:
            return False, []
        gap, items = self._gap, self._items
        self._gap, self._items = False, []
        self._filled.clear()
        return gap, items


class Hub:
    """The reader of one event loop. It runs while anybody listens, and reconnects for ever."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._topics: dict[Topic, set[Subscription]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._ready = asyncio.Event()
        self._stale = asyncio.Event()
        self._jobs: dict[int, int] = {}
        self._last: str | None = None

    async def subscribe(self, topics: Collection[Topic]) -> Subscription:
        """From now on nothing is missed without a gap being told; waits a moment for the reader if Redis is slow."""
        subscription = Subscription(topics)
        for topic in subscription.topics:
            self._topics.setdefault(topic, set()).add(subscription)
        if not self._tasks:
            self._ready.clear()
            self._last = None
            self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._refresh())]
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._ready.wait()
        except TimeoutError:
            log.warning("Redis is slow or away: a page gets its news later")
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a socket; the reader ends with the last one."""
        for topic in subscription.topics:
            listeners = self._topics.get(topic, set())
            listeners.discard(subscription)
            if not listeners:
                self._topics.pop(topic, None)
        if not self._topics:
            tasks, self._tasks = self._tasks, []
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self) -> None:
        rest = 0.1
        while True:
            client = redis.asyncio.Redis.from_url(
                self._url, socket_connect_timeout=2, socket_timeout=BLOCK_MS / 1000 + 5, decode_responses=True
            )
            try:
                await self._position(client)
                rest = 0.1
                while True:
                    await self._relay(client)
            except (RedisError, OSError) as error:
                log.warning("the live stream is away, next try in %.1f s: %s", rest, error)
            finally:
                await client.aclose()
            await asyncio.sleep(rest)
            rest = min(2.0, rest * 2)

    async def _position(self, client: redis.asyncio.Redis) -> None:
        """Begin at the stream's end. After a break what came meanwhile cannot be known: everybody is told of a gap."""
        newest: Any = await client.xrevrange(STREAM, count=1)
        again, self._last = self._last is not None, newest[0][0] if newest else "0-0"
        if again:
            for subscription in {each for listeners in self._topics.values() for each in listeners}:
                subscription.lose()
        self._ready.set()

    async def _relay(self, client: redis.asyncio.Redis) -> None:
        answer: Any = await client.xread({STREAM: self._last or "0-0"}, count=500, block=BLOCK_MS)
        for _, entries in answer:
            for entry, fields in entries:
                self._last = entry
                self._spread(fields)

    def _spread(self, fields: dict[str, str]) -> None:
        try:
            job, team = int(fields["job"]), int(fields["team"])
        except (KeyError, ValueError):
            log.error("an entry of %s names no job and team: %s", STREAM, sorted(fields))
            return
        if fields.get("kind") == "job":
            self._jobs[job] = team
            self._stale.set()
        if "gap" in fields:
            for subscription in self._listening(Topic("points", job), Topic("log", job)):
                subscription.lose()
        for kind in ("points", "log"):
            if kind in fields:
                self._put(Topic(kind, job), Item(kind, job, fields[kind]))

    def _listening(self, *topics: Topic) -> set[Subscription]:
        return {each for topic in topics for each in self._topics.get(topic, ())}

    def _put(self, topic: Topic, item: Item) -> None:
        for subscription in self._topics.get(topic, ()):
            subscription.put(item)

    async def _refresh(self) -> None:
        """Read changed jobs that somebody looks at, once for all sockets, and the last change in any case."""
        rows: dict[int, int] = {}
        sent: dict[int, float] = {}
        while True:
            if not rows:
                await self._stale.wait()
            self._stale.clear()
            jobs, self._jobs = self._jobs, {}
            rows |= {job: team for job, team in jobs.items() if Topic("row", team) in self._topics}
            now = time.monotonic()
            due = {job for job in rows if now - sent.get(job, 0.0) >= ROW_SECONDS}
            headers = {job for job in jobs if Topic("job", job) in self._topics}
            try:
                for item, topic in await in_database(_present, headers, due):
                    self._put(topic, item)
            except Exception:
                log.exception("changed jobs could not be read; the next change tries again")
            sent = {job: at for job, at in sent.items() if now - at < ROW_SECONDS} | dict.fromkeys(due, now)
            rows = {job: team for job, team in rows.items() if job not in due}
            await asyncio.sleep(REFRESH_SECONDS)


def _present(headers: set[int], rows: set[int]) -> list[tuple[Item, Topic]]:
    found = []
    for job in Job.objects.filter(pk__in=headers | rows).select_related("owner"):
        if job.pk in headers:
            found.append((header_item(job), Topic("job", job.pk)))
        if job.pk in rows:
            found.append((row_item(job), Topic("row", job.team_id)))
    return found


def header_item(job: Job) -> Item:
    """The `job` message of a job whose owner is joined."""
    return Item("job", job.pk, _json(job_message(job)))


def row_item(job: Job) -> Item:
    """The `row` message of a job whose owner is joined."""
    return Item("row", job.pk, _json(row_message(job)))


def _json(message: dict[str, Any]) -> str:
    return json.dumps(message, cls=DjangoJSONEncoder, separators=(",", ":"), ensure_ascii=False)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Hub]] = WeakKeyDictionary()


def hub() -> Hub:
    """The running event loop's hub."""
    hubs = _hubs.setdefault(asyncio.get_running_loop(), {})
    if settings.REDIS_URL not in hubs:
        hubs[settings.REDIS_URL] = Hub(settings.REDIS_URL)
    return hubs[settings.REDIS_URL]
