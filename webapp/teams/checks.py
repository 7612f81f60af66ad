"""Django system checks: what the environment got wrong, said before anything starts."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error

REDIS_SCHEMES = ("redis", "rediss", "unix")


def check_redis_url(**_: Any) -> list[CheckMessage]:
    """REDIS_URL must be of a kind that the client, Celery and the sockets all read."""
    scheme = urlsplit(settings.REDIS_URL).scheme
    if scheme in REDIS_SCHEMES:
        return []
    return [
        Error(
            f"REDIS_URL begins with {scheme or 'no scheme'!r}, which is no Redis address.",
            hint="Use redis://host:6379/0, rediss://host:6379/0 or unix:///path/redis.sock?db=0",
            id="lockstep.E001",
        )
    ]


def check_secret_key(**_: Any) -> list[CheckMessage]:
    """A generated key is for one machine only: in production every process must be given the same one."""
    if not settings.ENV.https or settings.ENV.secret_key:
        return []
    return [
        Error(
            "SECRET_KEY is empty while HTTPS is on.",
            hint="Set SECRET_KEY to 50 or more random characters, the same for every process of this site; "
            "to try Lockstep on one machine, set HTTPS=0.",
            id="lockstep.E002",
        )
    ]
