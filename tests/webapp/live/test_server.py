"""The sockets of a real uvicorn, met by a real WebSocket client."""

from __future__ import annotations

import json
import socket

import pytest
import redis
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.conftest import wait_for
from tests.webapp.ingest.house import House
from webapp.live import feed
from webapp.live.messages import PointsMessage, SeriesPart

LOGIN = """
from django.test import Client
from webapp.teams.models import User
answer = {}
for name in ("alice", "charlie"):
    client = Client()
    client.force_login(User.objects.get(username=name))
    answer[name] = client.cookies["sessionid"].value
"""


@pytest.fixture
def house(tmp_path, redis_server, migrated):
    made = House(tmp_path, redis_server.url, migrated)
    yield made
    made.end()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def refusal(address, **options):
    with pytest.raises(InvalidStatus) as refused, connect(address, **options):
        pass
    return refused.value.response.status_code


def test_it_serves_members_and_nobody_else(house, redis_server):
    port = free_port()
    house.start("-m", "uvicorn", "webapp.asgi:application", "--port", str(port), "--log-level", "warning")
    wait_for(lambda: answers(port), seconds=30, what="uvicorn")
    cookies = {name: {"Cookie": f"sessionid={key}"} for name, key in house.ask(LOGIN).items()}
    job, origin = house.ids["job"], f"http://127.0.0.1:{port}"
    addresses = [f"ws://127.0.0.1:{port}/ws/jobs/{job}/", f"ws://127.0.0.1:{port}/ws/t/vision/?points={job}"]
    for address in addresses:
        assert refusal(address, origin=origin) == 403
        assert refusal(address, origin="http://evil.example.org", additional_headers=cookies["alice"]) == 403
        assert refusal(address, origin=origin, additional_headers=cookies["charlie"]) == 404
    part = SeriesPart(name="loss", replica=None, start=0, steps=[0, 1], times=[1.0, 2.0], values=[0.5, float("nan")])
    news = feed.News(job, house.ids["team"], points=PointsMessage(job=job, series=[part]))
    client = redis.Redis.from_url(redis_server.url)
    for address, first in zip(addresses, ("job", "row"), strict=True):
        with connect(address, origin=origin, additional_headers=cookies["alice"]) as page:
            assert json.loads(page.recv(timeout=15))["type"] == first
            feed.tell(client, [news])
            told = json.loads(page.recv(timeout=15))
            assert (told["type"], told["series"][0]["values"]) == ("points", [0.5, "NaN"])
    client.close()
