"""How the host's processes connect to Redis: quick to give up, so that whoever calls decides when to try again."""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


def connect(url: str) -> redis.Redis:
    """A client that answers or raises redis.RedisError within seconds."""
    return redis.Redis.from_url(
        url, socket_timeout=5.0, socket_connect_timeout=2.0, retry=Retry(NoBackoff(), 0), health_check_interval=0
    )
