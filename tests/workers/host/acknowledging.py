"""The other end of the wire for the shipper's tests: commits byte ranges in order and acknowledges, as ingest does."""

from __future__ import annotations

import collections
import threading
from types import TracebackType
from typing import Any

import redis

from workers.contract.events import Ended, Event, parse_event
from workers.contract.wire import EVENTS, GROUP, Beat, Chunk, Hello, attempt_key, parse_message


class Receiver(threading.Thread):
    """`files[source]` holds what was committed; it survives Redis, as a database does.

    `deaf` makes it read nothing; `forgetful` makes it drop every n-th acknowledgement after the commit.
    """

    def __init__(self, client: redis.Redis, forgetful: int = 0) -> None:
        super().__init__(daemon=True)
        self.files: dict[tuple[int, str], bytearray] = collections.defaultdict(bytearray)
        self.beats: list[Beat] = []
        self.hellos: list[Hello] = []
        self.chunks = self.skipped = 0
        self.largest = 0
        self.deaf = threading.Event()
        self._client = client
        self._forgetful = forgetful
        self._over = threading.Event()

    def __enter__(self) -> Receiver:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self.join()
        self._client.close()

    def run(self) -> None:
        while not self._over.is_set():
            if self.deaf.is_set():
                self._over.wait(0.02)
                continue
            try:
                answer = self._read()
            except redis.ConnectionError:
                self._over.wait(0.05)
                continue
            for _, entries in answer or []:
                self._take(entries)

    def _read(self) -> Any:
        """New entries; a Redis that forgot the group is given it, and may die at that, too."""
        try:
            return self._client.xreadgroup(GROUP, "test", {EVENTS: ">"}, count=100, block=20)
        except redis.ResponseError:
            self._client.xgroup_create(EVENTS, GROUP, id="0", mkstream=True)
            return []

    def _take(self, entries: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
        try:
            for entry, fields in entries:
                message = parse_message(fields)
                if isinstance(message, Chunk):
                    self._commit(message)
                elif isinstance(message, Beat):
                    self.beats.append(message)
                else:
                    self.hellos.append(message)
                self._client.xack(EVENTS, GROUP, entry)
                self._client.xdel(EVENTS, entry)
        except redis.ConnectionError:
            self._over.wait(0.05)

    def _commit(self, chunk: Chunk) -> None:
        self.chunks += 1
        self.largest = max(self.largest, len(chunk.data))
        file = self.files[chunk.attempt, chunk.source]
        if chunk.offset <= len(file) < chunk.offset + len(chunk.data):
            file += chunk.data[len(file) - chunk.offset :]
            if chunk.source.startswith("events/"):
                assert chunk.data.endswith(b"\n")
            else:
                chunk.data.decode()
        else:
            self.skipped += 1
        if self._forgetful and self.chunks % self._forgetful == 0:
            return
        self._client.hset(attempt_key(chunk.attempt), chunk.source, len(file))

    def events(self, attempt: int, process: str) -> list[Event]:
        return [parse_event(line) for line in bytes(self.files[attempt, f"events/{process}"]).splitlines()]

    def end(self, attempt: int, host: str = "here") -> Ended | None:
        found = [event for event in self.events(attempt, f"supervisor@{host}") if isinstance(event, Ended)]
        assert len(found) <= 1
        return found[0] if found else None
