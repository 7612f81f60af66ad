"""The names and shapes of what hosts and control plane pass through Redis.

Hosts append to one stream, `EVENTS`. Event and log files travel as byte ranges of the file (`Chunk`): the control plane
commits each range exactly once and in order, and writes the committed length back to the hash `attempt_key(...)`. A
shipper sends again from the committed length whenever it stops growing, so neither a Redis that lost its memory nor an
ingest that died loses or doubles anything.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

EVENTS = "lockstep:events"
GROUP = "ingest"
"""The stream's consumer group."""

WAKE = "lockstep:wake"
"""A list; pushing anything lets the control process look at once."""

ORDER = "order"
"""Field of the attempt's hash: absent or `run`; `pause`: save a checkpoint and end; `stop`: end; `void`: was ended."""

SAVE = "save"
"""Field beside it: changes with each request for a checkpoint soon, while the job goes on."""

COMMITTED_TTL = 7 * 24 * 3600


def host_queue(host: str) -> str:
    """The Celery queue of one host."""
    return f"host.{host}"


def attempt_key(attempt: int) -> str:
    """Hash of one attempt: `<source>` -> committed bytes, ORDER and SAVE."""
    return f"lockstep:attempt:{attempt}"


class Chunk(NamedTuple):
    """Bytes `offset` .. `offset + len(data)` of one file of one attempt.

    `source` is `events/<process>` (whole lines only) or `logs/<process>.stdout`, `logs/<process>.stderr`.
    """

    attempt: int
    source: str
    offset: int
    data: bytes
    time: float

    def fields(self) -> dict[str | bytes, str | bytes | int | float]:
        """As a stream entry."""
        return {
            "kind": "chunk",
            "attempt": self.attempt,
            "source": self.source,
            "offset": self.offset,
            "time": self.time,
            "data": self.data,
        }


class Beat(NamedTuple):
    """A supervisor is alive. Sent straight to the stream every BEAT_SECONDS, never spooled."""

    attempt: int
    host: str

    def fields(self) -> dict[str | bytes, str | bytes | int | float]:
        """As a stream entry."""
        return {"kind": "beat", "attempt": self.attempt, "host": self.host}


class Hello(NamedTuple):
    """A host is alive; `inventory` is an Inventory as JSON. Sent every BEAT_SECONDS."""

    inventory: str

    def fields(self) -> dict[str | bytes, str | bytes | int | float]:
        """As a stream entry."""
        return {"kind": "host", "inventory": self.inventory}


BEAT_SECONDS = 2.0
LEASE_SECONDS = 30.0
"""Silence after which the control plane gives an attempt or a host up."""

Message = Chunk | Beat | Hello
Kind = Literal["chunk", "beat", "host"]


def parse_message(fields: dict[bytes, bytes]) -> Message:
    """A stream entry as its message. Raises ValueError on anything else."""
    kind = fields.get(b"kind")
    try:
        if kind == b"chunk":
            return Chunk(
                int(fields[b"attempt"]),
                fields[b"source"].decode(),
                int(fields[b"offset"]),
                fields[b"data"],
                float(fields[b"time"]),
            )
        if kind == b"beat":
            return Beat(int(fields[b"attempt"]), fields[b"host"].decode())
        if kind == b"host":
            return Hello(fields[b"inventory"].decode())
    except KeyError as error:
        raise ValueError(f"a {kind!r} message lacks {error.args[0]!r}") from None
    raise ValueError(f"unknown message kind {kind!r}")
