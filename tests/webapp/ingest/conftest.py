"""An ingest with a real Redis, and a host whose attempt it hears."""

from __future__ import annotations

import pytest

from tests.webapp.ingest.hosts import Host
from tests.webapp.jobs.scene import launch, queue
from webapp.ingest.consume import Ingest


@pytest.fixture
def attempt(team, alice, seed_spec):
    return launch(queue(team, alice, seed_spec), "alpha")


@pytest.fixture
def ingest(redis_server, settings):
    settings.REDIS_URL = redis_server.url
    consumer = Ingest(redis_server.url)
    yield consumer
    consumer.inbox.connection.close()


@pytest.fixture
def host(redis_server, attempt):
    client = redis_server.client()
    yield Host(client, attempt.pk)
    client.close()
