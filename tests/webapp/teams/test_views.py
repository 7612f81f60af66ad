from __future__ import annotations

import re
from typing import Any

from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from tests.conftest import RedisServer
from webapp.teams.models import Team, User

NO_REDIS = "unix:///nowhere/redis.sock?db=0"


def test_it_goes_home_to_the_jobs_of_the_first_team(client: Client, team: Team, alice: User) -> None:
    client.force_login(alice)
    assert client.get("/")["Location"] == reverse("jobs", args=["vision"])


def test_it_tells_somebody_without_a_team_what_to_do(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("dora"))
    answer = client.get("/")
    assert answer.status_code == 200 and b"team" in answer.content


def test_it_sends_the_anonymous_to_login(client: Client, db: None) -> None:
    assert client.get("/")["Location"] == f"{reverse('login')}?next=/"


def test_it_logs_in_by_password_and_out_by_post(client: Client, team: Team, alice: User) -> None:
    answer = client.post(reverse("login"), {"username": "alice", "password": "correct horse battery"})
    assert answer["Location"] == reverse("home")
    assert client.get(reverse("logout")).status_code == 405
    client.post(reverse("logout"))
    assert "_auth_user_id" not in client.session


def test_it_is_healthy_without_anything(client: Client, settings: Any) -> None:
    settings.REDIS_URL = NO_REDIS
    assert client.get(reverse("healthz")).content == b"ok\n"


def test_it_is_ready_with_database_migrations_and_redis(
    client: Client, db: None, redis_server: RedisServer, settings: Any
) -> None:
    settings.REDIS_URL = redis_server.url
    answer = client.get(reverse("readyz"))
    assert (answer.status_code, answer.json()) == (
        200,
        {"ready": True, "database": "ok", "migrations": "ok", "redis": "ok"},
    )


def test_it_is_not_ready_without_redis(client: Client, db: None, settings: Any) -> None:
    settings.REDIS_URL = NO_REDIS
    answer = client.get(reverse("readyz"))
    assert (answer.status_code, answer.json()["redis"], answer.json()["database"]) == (503, "does not answer", "ok")


def test_it_is_not_ready_before_the_migrations(client: Client, transactional_db: None, settings: Any) -> None:
    settings.REDIS_URL = NO_REDIS
    call_command("migrate", "cluster", "zero", verbosity=0)
    try:
        told = client.get(reverse("readyz")).json()["migrations"]
        assert re.fullmatch(r"\d+ not applied: run manage.py migrate", told)
    finally:
        call_command("migrate", verbosity=0)
