"""Tells that an attempt cannot even be written down here: straight to the stream, since there is no file to ship."""

from __future__ import annotations

import contextlib
import time

from workers.contract.events import Ended, to_line
from workers.contract.wire import EVENTS, Chunk
from workers.host.redis_client import connect
from workers.host.runs import RunFolder
from workers.host.settings import HostSettings


def refuse(settings: HostSettings, attempt: int, error: OSError) -> None:
    """End the attempt on this host because of `error`, unless its supervisor lives. Raises redis.RedisError.

    Without the assignment nobody starts it later, when the folder can be written again and the job has long ended.
    """
    run = RunFolder(settings.lockstep_runs / str(attempt))
    if run.alive:
        return
    with contextlib.suppress(OSError):
        run.assignment_file.unlink(missing_ok=True)
    host = settings.lockstep_host
    ended = Ended(
        # Whole seconds: told twice, it is the same bytes at the same place.
        time=float(int(time.time())),
        process=f"supervisor@{host}",
        outcome="failed",
        cause=f"{host} could not write to {run.path}: {error.strerror}. Make room there, or set LOCKSTEP_RUNS.",
    )
    chunk = Chunk(attempt, f"events/{ended.process}", 0, to_line(ended), time.time())
    with connect(settings.redis_url) as redis:
        redis.xadd(EVENTS, chunk.fields())
