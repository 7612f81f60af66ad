"""The one clock that leases are measured by: the database's."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.utils import timezone


def database_now() -> datetime:
    """Now, by the database server. SQLite has no clock of its own: it lives on this machine."""
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
