"""Calls into the database from a socket: in a thread, the connection given back afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
T = TypeVar("T")


async def in_database(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `call` answers."""
    answer: T = await database_sync_to_async(call)(*args, **kwargs)
    return answer
