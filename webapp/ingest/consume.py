"""The ingest process: read from the hosts' stream, commit, acknowledge, tell; for ever, whatever dies around it."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import redis
from django.db import InterfaceError, OperationalError, connection, transaction
from pydantic import ValidationError

from webapp.cluster import hearing
from webapp.ingest import batch
from webapp.ingest.batch import Outcome
from webapp.ingest.inbox import COUNT, Inbox, Letter
from webapp.live import feed
from workers.contract.inventory import Inventory
from workers.contract.wire import Beat, Chunk, Hello

BLOCK_MS = 500
AHEAD_SECONDS = 2.0
"""How long a chunk waits for the one before it, which another ingest process may hold; then its shipper sends again."""
MOST_AHEAD = 1_000
LONGEST_REST = 5.0

T = TypeVar("T")
log = logging.getLogger(__name__)


class Stopped(Exception):
    """The process was told to end while the database was away; what it holds stays unacknowledged."""


class Ingest:
    """One ingest process. Any number may run; the rows of `ingest.Source` keep them from doing anything twice."""

    def __init__(self, url: str, stop: threading.Event | None = None) -> None:
        client = redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=BLOCK_MS / 1000 + 10)
        self.inbox = Inbox(client)
        self.stop = stop or threading.Event()
        self._ahead: dict[bytes, tuple[float, Chunk]] = {}
        self._next_tick = self._next_claim = 0.0
        self._rest = 0.0

    def run(self) -> None:
        """Until `stop` is set; ends after the batch at hand."""
        while not self.stop.is_set():
            try:
                self.once()
                self._rest = 0.0
            except redis.RedisError as error:
                self._pause("Redis", error)
            except Stopped:
                break
        try:
            self.inbox.leave()
        except redis.RedisError as error:
            log.info("Redis is away at the end: %s", error)

    def once(self, block_ms: int = BLOCK_MS) -> int:
        """One batch; the number of entries handled. Raises redis.RedisError while Redis is away."""
        letters = self.inbox.receive(50 if self._ahead else block_ms)
        caught_up = len(letters) < COUNT
        now = time.monotonic()
        if now >= self._next_claim:
            self._next_claim = now + 2.0
            letters = self.inbox.take_over() + letters
        if letters or self._ahead:
            self._handle(letters)
        if now >= self._next_tick:
            self._next_tick = now + 1.0
            self._tick(caught_up)
        return len(letters)

    def _tick(self, caught_up: bool) -> None:
        if caught_up:  # behind a backlog there may be beats that we have not heard yet
            self._persist(hearing.ingest_listening)
        news = self._persist(batch.flush_waiting)
        if news:
            feed.tell(self.inbox.connection, news)
        self.inbox.tidy()

    def _handle(self, letters: Sequence[Letter]) -> None:
        self._hear(letters)
        waiting = {entry: chunk for entry, (_, chunk) in self._ahead.items()}
        arrived = {each.id: each.message for each in letters if isinstance(each.message, Chunk)}
        chunks = dict(sorted((waiting | arrived).items(), key=lambda item: item[1][:3]))
        outcome = self._store(list(chunks.values()))
        early = {id(chunk) for chunk in outcome.ahead}
        held = self._hold({entry: chunk for entry, chunk in chunks.items() if id(chunk) in early})
        for chunk in outcome.unknown:
            outcome.committed[chunk.attempt, chunk.source] = chunk.offset + len(chunk.data)
        void = {chunk.attempt for chunk in outcome.unknown}
        if void:
            log.warning("attempts %s do not exist: their hosts are told to stop", sorted(void))
        # Told first: the browser waits for this, a shipper only for room in its window.
        feed.tell(self.inbox.connection, outcome.news)
        ids = {each.id for each in letters} | waiting.keys()
        self.inbox.done(ids - held, outcome.committed, void)

    def _hold(self, ahead: dict[bytes, Chunk]) -> set[bytes]:
        """Keep chunks that came too early for a moment; the entries that are still kept."""
        now = time.monotonic()
        since = {entry: self._ahead[entry][0] if entry in self._ahead else now for entry in ahead}
        kept = [entry for entry in ahead if now - since[entry] < AHEAD_SECONDS][:MOST_AHEAD]
        self._ahead = {entry: (since[entry], ahead[entry]) for entry in kept}
        return set(kept)

    def _store(self, chunks: list[Chunk]) -> Outcome:
        """Commit the batch; what the database refuses is narrowed down to the piece that it refuses."""
        if not chunks:
            return Outcome()
        try:
            return self._persist(lambda: batch.take(chunks))
        except Stopped:
            raise
        except Exception:
            log.exception("a batch of %d chunks was refused; taking them one by one", len(chunks))
        outcome = Outcome()
        for chunk in chunks:
            one = self._store_carefully(chunk)
            outcome.committed |= one.committed
            outcome.news += one.news
            outcome.ahead += one.ahead
            outcome.unknown += one.unknown
            outcome.faults += one.faults
        return outcome

    def _store_carefully(self, chunk: Chunk) -> Outcome:
        try:
            return self._persist(lambda: batch.take([chunk], careful=True))
        except Stopped:
            raise
        except Exception:
            log.exception("%s of attempt %s at %s cannot be stored", chunk.source, chunk.attempt, chunk.offset)
        try:
            return self._persist(lambda: batch.give_up(chunk))
        except Stopped:
            raise
        except Exception:
            log.exception("nor can that be said in its log; the bytes are dropped")
            return Outcome()

    def _hear(self, letters: Sequence[Letter]) -> None:
        beats = {each.message for each in letters if isinstance(each.message, Beat)}
        hosts: dict[str, Inventory] = {}
        for text in [each.message.inventory for each in letters if isinstance(each.message, Hello)]:
            try:
                inventory = Inventory.model_validate_json(text)
            except ValidationError as error:
                log.error("a host's inventory cannot be read and is dropped: %s", error)
            else:
                hosts[inventory.host] = inventory
        if beats or hosts:
            self._persist(lambda: _heard(beats, list(hosts.values())))

    def _persist(self, action: Callable[[], T]) -> T:
        """Run a transaction; while the database is away or busy, again.

        Raises Stopped when told to end meanwhile.
        """
        while True:
            try:
                answer = action()
            except (OperationalError, InterfaceError) as error:
                connection.close()
                if self.stop.is_set():
                    raise Stopped from error
                self._pause("the database", error)
            else:
                return answer

    def _pause(self, what: str, error: Exception) -> None:
        self._rest = min(LONGEST_REST, max(0.1, self._rest * 2))
        log.warning("%s is away, next try in %.1f s: %s", what, self._rest, error)
        self.stop.wait(self._rest)


def _heard(beats: set[Beat], hosts: list[Inventory]) -> None:
    """Each word in a transaction of its own: one that the database refuses does not silence the others."""
    for beat in sorted(beats):
        _one_word(functools.partial(hearing.hear_attempt, beat.attempt, beat.host))
    for host in hosts:
        _one_word(functools.partial(hearing.hear_host, host))


def _one_word(action: Callable[[], object]) -> None:
    try:
        with transaction.atomic():
            action()
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("a host's word was refused by the database")
