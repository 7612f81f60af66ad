"""The hosts' stream as ingest reads it: a group that survives a Redis that was lost and consumers that died."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterable
from typing import Any, NamedTuple

import redis

from webapp.ingest.sources import origin
from workers.contract.wire import COMMITTED_TTL, EVENTS, GROUP, ORDER, Chunk, Message, attempt_key, parse_message

COUNT = 256
DEAD_AFTER_MS = 5_000
"""A message that its consumer has not acknowledged for so long is taken over."""
FORGET_AFTER_MS = 600_000

log = logging.getLogger(__name__)


class Letter(NamedTuple):
    """An entry of the stream; `message` is None when it cannot be read."""

    id: bytes
    message: Message | None


class Inbox:
    """One consumer of the group. Every method raises redis.RedisError while Redis is away."""

    def __init__(self, connection: redis.Redis) -> None:
        self.connection = connection
        self.name = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}"

    def receive(self, block_ms: int) -> list[Letter]:
        """New entries, at most COUNT; waits for the first one."""
        answer = self._grouped("read", block_ms)
        return [_letter(*entry) for _, entries in answer or [] for entry in entries]

    def take_over(self) -> list[Letter]:
        """Entries that a consumer received and never acknowledged, this one included."""
        answer = self._grouped("claim", 0)
        return [_letter(*entry) for entry in answer[1] if entry[1]]

    def done(self, ids: Iterable[bytes], committed: dict[tuple[int, str], int], void: Iterable[int] = ()) -> None:
        """Tell shippers what is committed, tell supervisors of `void` attempts to stop, and remove the entries."""
        pipe = self.connection.pipeline(transaction=False)
        lengths: dict[int, dict[str | bytes, str | bytes | int | float]] = {}
        for (attempt, source), length in committed.items():
            lengths.setdefault(attempt, {})[source] = length
        for attempt in void:
            lengths.setdefault(attempt, {})[ORDER] = "void"
        for attempt, fields in lengths.items():
            pipe.hset(attempt_key(attempt), mapping=fields)  # type: ignore[arg-type]
            pipe.expire(attempt_key(attempt), COMMITTED_TTL)
        handled = list(ids)
        if handled:
            pipe.xack(EVENTS, GROUP, *handled)
            pipe.xdel(EVENTS, *handled)
        pipe.execute()

    def tidy(self) -> None:
        """Forget consumers that have been gone for long and left nothing."""
        for consumer in self.connection.xinfo_consumers(EVENTS, GROUP):
            if consumer["pending"] == 0 and consumer["idle"] > FORGET_AFTER_MS:
                self.connection.xgroup_delconsumer(EVENTS, GROUP, consumer["name"])

    def leave(self) -> None:
        """Forget this consumer, unless it leaves something that another must take over."""
        mine = [each for each in self.connection.xinfo_consumers(EVENTS, GROUP) if each["name"] == self.name.encode()]
        if mine and mine[0]["pending"] == 0:
            self.connection.xgroup_delconsumer(EVENTS, GROUP, self.name)

    def _grouped(self, verb: str, block_ms: int) -> Any:
        try:
            return self._ask(verb, block_ms)
        except redis.ResponseError as error:
            if "NOGROUP" not in str(error) and "no such key" not in str(error):
                raise
        log.warning("Redis has no group %s: created (it is new, or lost its memory; hosts will send again)", GROUP)
        try:
            self.connection.xgroup_create(EVENTS, GROUP, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        return self._ask(verb, block_ms)

    def _ask(self, verb: str, block_ms: int) -> Any:
        if verb == "claim":
            return self.connection.xautoclaim(EVENTS, GROUP, self.name, DEAD_AFTER_MS, count=COUNT)
        return self.connection.xreadgroup(GROUP, self.name, {EVENTS: ">"}, count=COUNT, block=block_ms)


def _letter(entry: bytes, fields: dict[bytes, bytes]) -> Letter:
    try:
        message = parse_message(fields)
        _check(message)
    except ValueError as error:
        log.error("an entry of %s cannot be read and is dropped: %s", EVENTS, error)
        return Letter(entry, None)
    return Letter(entry, message)


def _check(message: Message) -> None:
    if not isinstance(message, Chunk):
        return
    if not 0 < message.attempt < 2**63 or not 0 <= message.offset < 2**62:
        raise ValueError(f"attempt {message.attempt} or offset {message.offset} is out of range")
    origin(message.source)
