"""Brings the bytes of an attempt's files to the control plane, each range until it is acknowledged.

Promises: every byte that a process wrote arrives, in order, whatever happens to Redis or to ingest meanwhile; at most
`WINDOW` bytes of an attempt are on their way; nothing here ever waits for the training or makes it wait.
"""

from __future__ import annotations

import json
import logging
import threading
import time

import redis

from workers.contract.wire import BEAT_SECONDS, EVENTS, ORDER, SAVE, Beat, Chunk, attempt_key
from workers.host.redis_client import connect
from workers.host.runs import RunFolder, write_whole
from workers.host.sources import Source, discover

WINDOW = 8 * 1024 * 1024
LOG_WINDOW = WINDOW // 2
"""Logs may fill half of the window, so that a process that floods its log never holds back a point."""
BUSY_BYTES = 64 * 1024
POLL_SECONDS = 0.05
ORDER_SECONDS = 0.5
STALL_SECONDS = 2.0
LONGEST_PATIENCE = 60.0
LONGEST_BACK_OFF = 5.0
SAVE_SECONDS = 1.0
LAST_WORD = b'"type":"ended"'

log = logging.getLogger(__name__)


class Shipper(threading.Thread):
    """Runs until `finish()` was called and every byte is acknowledged, or until `abandon()`.

    `voided` is set once the control plane has ended the attempt without us; `complete` once all is acknowledged. An
    order to stop becomes the run folder's stop mark, as if the Celery worker had left it; orders to pause and to save a
    checkpoint become marks for the engine.
    """

    def __init__(self, run: RunFolder, host: str, redis_url: str) -> None:
        super().__init__(name="shipper", daemon=True)
        self.run_folder = run
        self.attempt = run.attempt
        self.voided = threading.Event()
        self.complete = threading.Event()
        self._host = host
        self._own = f"events/supervisor@{host}"
        self._redis = connect(redis_url)
        self._finishing = threading.Event()
        self._abandoned = threading.Event()
        self._sources: dict[str, Source] = {}
        self._acked_before = _read_shipped(run)
        self._beat_due = self._order_due = self._save_due = 0.0
        self._unsaved = False
        self._saves: bytes | None = None

    def finish(self) -> None:
        """No file grows any more: flush what is left of unfinished lines, and end when all is acknowledged."""
        self._finishing.set()

    def abandon(self) -> None:
        """End soon, acknowledged or not; what is left is sent by a later supervisor."""
        self._abandoned.set()

    def run(self) -> None:
        back_off = 0.0
        while not self._abandoned.is_set() and not self.complete.is_set():
            final = self._finishing.is_set()
            try:
                busy = self.step(final=final)
                if back_off:
                    log.info("attempt %s: Redis is back", self.attempt)
                back_off = 0.0
            except (redis.RedisError, OSError) as error:
                if not back_off:
                    log.warning("attempt %s: cannot ship (%s), trying for ever", self.attempt, error)
                back_off = min(max(2 * back_off, 0.1), LONGEST_BACK_OFF)
                self._hurry()
                busy = False
            if not busy:
                self._abandoned.wait(back_off or POLL_SECONDS)
        self._save(force=True)

    def step(self, *, final: bool) -> bool:
        """One pass: hear acknowledgements, send what is new, beat. True when there is more to do at once.

        Raises redis.RedisError or OSError; nothing is lost by that.
        """
        now = time.monotonic()
        self._discover()
        self._hear(now)
        self._resend_lost(now)
        sent = self._send(now, final=final)
        self._beat(now)
        self._save(force=False)
        if final and not sent and all(source.in_flight == 0 for source in self._sources.values()):
            self.complete.set()
        return sent >= BUSY_BYTES

    def _discover(self) -> None:
        known = len(self._sources)
        discover(self.run_folder.path, self._sources)
        if len(self._sources) == known:
            return
        for name, source in self._sources.items():
            if not source.sent and name in self._acked_before:
                source.acked = source.sent = min(self._acked_before.pop(name), source.size())

    def _hear(self, now: float) -> None:
        flying = any(source.in_flight for source in self._sources.values())
        if not flying and now < self._order_due:
            return
        self._order_due = now + ORDER_SECONDS
        told: dict[bytes, bytes] = self._redis.hgetall(attempt_key(self.attempt))  # type: ignore[assignment]
        for name, value in told.items():
            source = self._sources.get(name.decode())
            if source is not None and value.isdigit():
                self._unsaved |= source.acknowledge(int(value), now)
        self._obey(told.get(ORDER.encode()), told.get(SAVE.encode()))

    def _obey(self, order: bytes | None, save: bytes | None) -> None:
        if order == b"void":
            self.voided.set()
        elif order == b"stop":
            self.run_folder.ask_to_stop()
        elif order == b"pause":
            self.run_folder.ask_to_pause()
        if save is not None and save != self._saves:
            self._saves = save
            self.run_folder.ask_to_save()

    def _resend_lost(self, now: float) -> None:
        """Send again from the acknowledged length where that has not grown for a while.

        An entry that still lies in the stream is not lost, ingest is only away: then one is sent again ever more
        rarely, so that a Redis whose reader is away for hours does not fill up.
        """
        for source in self._sources.values():
            if not source.in_flight or now - source.grew < max(STALL_SECONDS, source.patience):
                continue
            if source.flying and self._redis.xrange(EVENTS, source.flying[0].entry, source.flying[0].entry):
                source.patience = min(max(2 * source.patience, 2 * STALL_SECONDS), LONGEST_PATIENCE)
                self._send_again(source)
                source.grew = now
            else:
                log.info("attempt %s: %s again from byte %s", self.attempt, source.name, source.acked)
                source.rewind(source.acked, now)

    def _send_again(self, source: Source) -> None:
        """The first range on its way once more, the rest left as it is."""
        first = source.flying[0]
        with open(source.path, "rb") as file:
            file.seek(source.acked)
            data = file.read(first.end - source.acked)
        chunk = Chunk(self.attempt, source.name, source.acked, data, time.time())
        self._redis.xadd(EVENTS, chunk.fields())  # type: ignore[arg-type]

    def _send(self, now: float, *, final: bool) -> int:
        """Send the next piece of every source that the window has room for; returns bytes sent."""
        pieces = self._pieces(now, final=final)
        if not pieces:
            return 0
        pipeline = self._redis.pipeline(transaction=False)
        for source, piece in pieces:
            chunk = Chunk(self.attempt, source.name, source.sent, piece, time.time())
            pipeline.xadd(EVENTS, chunk.fields())  # type: ignore[arg-type]
        # When this raises, some may have arrived: they are sent once more, and skipped.
        for (source, piece), entry in zip(pieces, pipeline.execute(), strict=True):
            source.sent_piece(len(piece), entry, now)
        return sum(len(piece) for _, piece in pieces)

    def _pieces(self, now: float, *, final: bool) -> list[tuple[Source, bytes]]:
        """One piece a source, events before logs.

        The supervisor's last word waits until all else has been taken in: who reads that a job has ended then finds
        everything that it did.
        """
        room = WINDOW - sum(source.in_flight for source in self._sources.values())
        log_room = LOG_WINDOW - sum(s.in_flight for s in self._sources.values() if not s.lines_only)
        pieces: list[tuple[Source, bytes]] = []
        for source in sorted(self._sources.values(), key=lambda s: (s.name == self._own, not s.lines_only)):
            piece = source.next_piece(now, final=final)
            if not piece or len(piece) > (room if source.lines_only else min(room, log_room)):
                continue
            if source.name == self._own and LAST_WORD in piece and (pieces or not final or self._others_fly()):
                continue
            pieces.append((source, piece))
            room -= len(piece)
            log_room -= 0 if source.lines_only else len(piece)
        return pieces

    def _others_fly(self) -> bool:
        return any(source.in_flight for source in self._sources.values() if source.name != self._own)

    def _beat(self, now: float) -> None:
        if now >= self._beat_due:
            self._redis.xadd(EVENTS, Beat(self.attempt, self._host).fields())  # type: ignore[arg-type]
            self._beat_due = now + BEAT_SECONDS

    def _hurry(self) -> None:
        """After a failure look at once whether Redis still has what was on its way."""
        self._order_due = self._beat_due = 0.0
        for source in self._sources.values():
            source.grew, source.patience = 0.0, 0.0

    def _save(self, *, force: bool) -> None:
        now = time.monotonic()
        if self._unsaved and (force or now >= self._save_due):
            self._save_due, self._unsaved = now + SAVE_SECONDS, False
            acked = {name: source.acked for name, source in sorted(self._sources.items())}
            write_whole(self.run_folder.shipped_file, json.dumps(acked))


def _read_shipped(run: RunFolder) -> dict[str, int]:
    """Acknowledged bytes by source; a damaged file only means that ingest skips what it has."""
    try:
        read = json.loads(run.shipped_file.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return {str(name): int(value) for name, value in read.items()} if isinstance(read, dict) else {}
