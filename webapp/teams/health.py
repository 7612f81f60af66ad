"""What `/readyz` asks: whether the database answers and is migrated, and whether Redis answers."""

from __future__ import annotations

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.exceptions import MigrationSchemaMissing
from django.db.migrations.executor import MigrationExecutor
from redis.backoff import NoBackoff
from redis.retry import Retry

OK = "ok"


def readiness() -> dict[str, str]:
    """Each dependency by name: `ok`, or what is wrong with it in a few words."""
    database = _database()
    migrations = _migrations() if database == OK else "unknown: the database does not answer"
    return {"database": database, "migrations": migrations, "redis": _redis()}


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "does not answer"
    return OK


def _migrations() -> str:
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except (DatabaseError, MigrationSchemaMissing):
        return "cannot be read"
    return f"{len(missing)} not applied: run manage.py migrate" if missing else OK


def _redis() -> str:
    return "does not answer" if redis_fault() else OK


def redis_fault() -> str:
    """Why REDIS_URL cannot be used, in Redis' own words; empty when it answers."""
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL, socket_connect_timeout=1, socket_timeout=1, retry=Retry(NoBackoff(), 0)
        ) as client:
            client.ping()
    except (redis.RedisError, ValueError, OSError) as error:
        return str(error) or type(error).__name__
    return ""
