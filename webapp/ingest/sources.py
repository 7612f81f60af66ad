"""Which bytes of a chunk are new, and what the name of a source says."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from workers.contract.wire import Chunk

_NAME = re.compile(r"events/(?P<writer>[^\x00/]{1,120})|logs/(?P<process>[^\x00/]{1,120})\.(?P<stream>stdout|stderr)")


class Origin(NamedTuple):
    """The process that wrote a file, and which of its files it is."""

    process: str
    stream: Literal["events", "stdout", "stderr"]


def origin(source: str) -> Origin:
    """What `events/worker-0` or `logs/worker-0.stderr` means.

    Raises ValueError for any other name.
    """
    found = _NAME.fullmatch(source)
    if found is None:
        raise ValueError(f"source: {source[:80]!r} is neither events/<process> nor logs/<process>.stdout or .stderr")
    if found["writer"]:
        return Origin(found["writer"], "events")
    return Origin(found["process"], "stdout" if found["stream"] == "stdout" else "stderr")


def fit(committed: int, chunk: Chunk) -> bytes | None:
    """The bytes of `chunk` behind the `committed` ones: b"" when none is new, None when some between are missing."""
    if chunk.offset > committed:
        return None
    return chunk.data[committed - chunk.offset :]
