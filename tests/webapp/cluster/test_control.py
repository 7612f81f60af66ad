from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from tests.conftest import RedisServer
from tests.waiting import wait_for
from tests.webapp.cluster.hosts import hear
from tests.webapp.jobs import scene
from webapp.cluster import control as module
from webapp.cluster.control import Control
from webapp.jobs.models import Attempt, Job, State, Supervisor
from webapp.teams.models import Team, User

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def control() -> Iterator[Control]:
    control = Control()

    def run() -> None:
        try:
            control.run()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    yield control
    control.stop.set()
    thread.join(timeout=20)
    assert not thread.is_alive()


@pytest.fixture
def house(transactional_db: None, redis_server: RedisServer, settings: Any) -> RedisServer:
    settings.REDIS_URL = redis_server.url
    return redis_server


def test_it_places_and_sends_what_is_queued(
    house: RedisServer, team: Team, alice: User, seed_spec: dict[str, Any], control: Control
) -> None:
    hear("h1")
    job = scene.queue(team, alice, seed_spec)
    wait_for(lambda: Supervisor.objects.filter(sent__isnull=False).exists(), what="the launch")
    assert Job.objects.get(pk=job.pk).state == State.STARTING
    with house.client() as client:
        assert client.llen("host.h1") == 1


def test_it_goes_on_through_a_redis_that_dies_and_comes_back(
    house: RedisServer,
    team: Team,
    alice: User,
    seed_spec: dict[str, Any],
    control: Control,
    caplog: pytest.LogCaptureFixture,
) -> None:
    house.kill()
    hear("h1")
    scene.queue(team, alice, seed_spec)
    wait_for(Attempt.objects.exists, what="the placement, which needs no Redis")
    wait_for(lambda: "Redis is away" in caplog.text, what="the log line")
    house.start()
    wait_for(lambda: Supervisor.objects.filter(sent__isnull=False).exists(), seconds=30, what="the launch")


def test_it_goes_on_when_the_database_fails_a_turn(
    house: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    turns = []

    def schedule() -> list[int]:
        turns.append(1)
        if len(turns) < 3:
            raise OperationalError("the server closed the connection")
        control.stop.set()
        return []

    monkeypatch.setattr(module, "schedule", schedule)
    control = Control()
    control.run()
    assert len(turns) == 3
    assert caplog.text.count("the database failed") == 1


def test_it_ends_on_sigterm(redis_server: RedisServer, tmp_path: Path, migrated: Path) -> None:
    environment = {**os.environ, "HTTPS": "0", "LOCKSTEP_HOME": str(tmp_path), "REDIS_URL": redis_server.url}
    environment["DATABASE_URL"] = f"sqlite:///{shutil.copy(migrated, tmp_path)}"
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "control"], env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        with redis_server.client() as client:
            blocked = "cmd=blpop"
            wait_for(lambda: blocked in str(client.execute_command("CLIENT", "LIST")), what="the loop")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)
        assert process.returncode == 0 and "Traceback" not in errors
    finally:
        process.kill()
        process.wait()
