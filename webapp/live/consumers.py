"""The sockets of a job's page and of a team's tables: connect, current state, relay, disconnect."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Any
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer

from webapp.jobs.models import Job
from webapp.live.coalesce import frames
from webapp.live.database import in_database
from webapp.live.hub import Item, Subscription, Topic, header_item, hub, row_item
from webapp.live.messages import BeatMessage, GapMessage
from webapp.teams.models import Team

BEAT_SECONDS = 5.0
FRAME_SECONDS = 0.05
"""A frame each so long at most: 20 a second."""
CHECK_SECONDS = 30.0
"""How often an open socket's right to be open is looked at again."""
MOST_ROWS = 50
MOST_POINTS_JOBS = 500
GONE = 4404


class _Live(AsyncWebsocketConsumer):  # type: ignore[misc]
    """What both sockets do; they differ in who may listen, to what, and what there is to say at first."""

    subscription: Subscription | None = None
    relay: asyncio.Task[None] | None = None

    async def topics(self) -> set[Topic] | None:
        """What the visitor listens to; None for a stranger."""
        raise NotImplementedError

    async def current(self) -> list[Item]:
        """The state at this moment."""
        raise NotImplementedError

    async def connect(self) -> None:
        if not self.scope["user"].is_authenticated:
            await self.close()
            return
        topics = await self.topics()
        if topics is None:
            await self._not_found()
            return
        # Listening begins before the state is read: what happens in between comes twice rather than never.
        self.subscription = await hub().subscribe(topics)
        await self.accept()
        self.relay = asyncio.create_task(self._relay(self.subscription))

    async def disconnect(self, code: int) -> None:
        if self.relay is not None:
            self.relay.cancel()
            await asyncio.gather(self.relay, return_exceptions=True)
        if self.subscription is not None:
            await hub().unsubscribe(self.subscription)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """A page only listens."""

    async def _relay(self, subscription: Subscription) -> None:
        await self._send(frames(await self.current()))
        beat = check = time.monotonic()
        while True:
            now = time.monotonic()
            if now - check >= CHECK_SECONDS:
                check = now
                if await self.topics() is None:
                    await self.close(GONE)
                    return
            if now - beat >= BEAT_SECONDS:
                beat = now
                await self.send(BeatMessage(time=time.time()).model_dump_json())
            gap, items = await subscription.take(max(0.0, beat + BEAT_SECONDS - now))
            await self._send([GapMessage().model_dump_json()] * gap + frames(items))

    async def _send(self, texts: Collection[str]) -> None:
        for text in texts:
            await self.send(text)
        # While this rests, what comes is gathered and will go out together.
        await asyncio.sleep(FRAME_SECONDS * len(texts))

    async def _not_found(self) -> None:
        if "websocket.http.response" not in self.scope.get("extensions", {}):
            await self.close()
            return
        start = {"type": "websocket.http.response.start", "status": 404, "headers": []}
        await super(AsyncWebsocketConsumer, self).send(start)
        await super(AsyncWebsocketConsumer, self).send({"type": "websocket.http.response.body", "body": b""})


class JobConsumer(_Live):
    """`/ws/jobs/<id>/`: header, points and log of one job."""

    async def topics(self) -> set[Topic] | None:
        job = self.scope["url_route"]["kwargs"]["job_id"]
        if not await in_database(_visible_jobs, self.scope["user"], [job]):
            return None
        return {Topic("job", job), Topic("points", job), Topic("log", job)}

    async def current(self) -> list[Item]:
        return await in_database(_header, self.scope["url_route"]["kwargs"]["job_id"])


class TeamConsumer(_Live):
    """`/ws/t/<slug>/`: rows of the team's jobs; with `?points=1,2,3` the points of those jobs too (compare)."""

    async def topics(self) -> set[Topic] | None:
        team = await in_database(_visible_team, self.scope["user"], self.scope["url_route"]["kwargs"]["slug"])
        if team is None:
            return None
        wanted = parse_qs(self.scope.get("query_string", b"").decode("latin-1")).get("points", [""])[0]
        jobs = [int(part) for part in wanted.split(",") if part.isascii() and part.isdigit() and len(part) < 19]
        visible = await in_database(_visible_jobs, self.scope["user"], jobs[:MOST_POINTS_JOBS])
        return {Topic("row", team)} | {Topic("points", job) for job in visible}

    async def current(self) -> list[Item]:
        return await in_database(_rows, self.scope["user"], self.scope["url_route"]["kwargs"]["slug"])


class NowhereConsumer(_Live):
    """Any other address: not found, where Channels alone would raise."""

    async def topics(self) -> set[Topic] | None:
        return None


def _visible_jobs(user: Any, jobs: list[int]) -> list[int]:
    storable = [job for job in jobs if job < 2**63]
    return list(Job.objects.visible_to(user).filter(pk__in=storable).values_list("pk", flat=True)) if storable else []


def _visible_team(user: Any, slug: str) -> int | None:
    return Team.objects.visible_to(user).filter(slug=slug).values_list("pk", flat=True).first()


def _header(job: int) -> list[Item]:
    return [header_item(found) for found in Job.objects.filter(pk=job).select_related("owner")]


def _rows(user: Any, slug: str) -> list[Item]:
    jobs = Job.objects.visible_to(user).filter(team__slug=slug).select_related("owner").order_by("-id")
    return [row_item(job) for job in jobs[:MOST_ROWS]]
