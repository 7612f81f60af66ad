"""A member of a team with a host, and what they type."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from webapp.cluster import hearing
from webapp.configure import forms
from webapp.teams.models import User
from workers.contract.inventory import DeviceInfo, Inventory

NEW = "/t/vision/jobs/new/"


@pytest.fixture(autouse=True)
def _nobody_to_wake(settings: Any) -> None:
    # Submitting wakes the control process; without a Redis that fails softly, and at once on a missing socket.
    settings.REDIS_URL = "unix:///nonexistent/redis.sock"


@pytest.fixture
def member(client: Client, bob: User) -> Client:
    client.force_login(bob)
    return client


def hear(**more: Any) -> None:
    devices = tuple(DeviceInfo(kind="cpu", index=index, name=f"cpu {index}") for index in range(2))
    hearing.hear_host(Inventory(host="h", address="127.0.0.1", cores=2, memory_bytes=2**33, devices=devices, **more))


def typed(**changes: str) -> dict[str, str]:
    return forms.blank() | {name.replace("__", "."): text for name, text in changes.items()} | {"view": "form"}
