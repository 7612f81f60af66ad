"""Times that hosts tell, made fit for the database."""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone


def moment(seconds: float, *, after: datetime | None) -> datetime:
    """A host's clock reading (seconds since 1970) as a time, held between `after` and now: hosts' clocks go wrong."""
    now = timezone.now()
    try:
        told = min(datetime.fromtimestamp(seconds, UTC), now)
    except (OverflowError, ValueError, OSError):
        return now
    return max(told, after) if after else told
