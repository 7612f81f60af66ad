"""The supervisor's hold on its shipper: started late, kept alive, asked how far it is."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from workers.host.runs import RunFolder

if TYPE_CHECKING:
    from workers.host.shipper import Shipper

log = logging.getLogger(__name__)


class Shipping:
    """One shipper thread at a time; a fault in it is logged and a new one goes on from what is acknowledged."""

    def __init__(self, run: RunFolder, host: str, redis_url: str) -> None:
        self._run = run
        self._host = host
        self._redis_url = redis_url
        self._shipper: Shipper | None = None
        self._finishing = False

    @property
    def voided(self) -> bool:
        return self._shipper is not None and self._shipper.voided.is_set()

    @property
    def complete(self) -> bool:
        return self._shipper is not None and self._shipper.complete.is_set()

    def attend(self) -> None:
        """One pass in the calling thread, for the time before the gang: the attempt is alive, and hears its orders."""
        import redis

        if self._shipper is None:
            self._shipper = self._new()
        try:
            self._shipper.step(final=False)
        except (redis.RedisError, OSError) as error:
            log.warning("attempt %s: Redis is away: %s", self._run.attempt, error)

    def start(self) -> None:
        """Does nothing when one runs."""
        unstarted = self._shipper is not None and self._shipper.ident is None
        if self._shipper is None or not (unstarted or self._shipper.is_alive() or self.complete):
            self._shipper, unstarted = self._new(), True
        if unstarted:
            if self._finishing:
                self._shipper.finish()
            self._shipper.start()

    def _new(self) -> Shipper:
        # Imported here, after the gang was started: the Redis client costs what the first step would wait for.
        from workers.host.shipper import Shipper

        return Shipper(self._run, self._host, self._redis_url)

    def tend(self) -> None:
        """Start it again when it died of a fault, which its thread has printed."""
        if self._shipper is not None and not self._shipper.is_alive() and not self.complete:
            log.error("attempt %s: the shipper died, starting it again", self._run.attempt)
            self.start()

    def finish(self) -> None:
        self._finishing = True
        if self._shipper is not None:
            self._shipper.finish()

    def abandon(self) -> None:
        if self._shipper is not None:
            self._shipper.abandon()
            self._shipper.join(timeout=1.0)
