"""`manage.py ingest` as real processes: two at once, one killed, Redis killed, and the rest told to end."""

from __future__ import annotations

import signal
import time

import pytest

from tests.conftest import wait_for
from tests.webapp.ingest.hosts import Host, points
from tests.webapp.ingest.house import House

HELD = """
from webapp.metrics import store
from webapp.ingest.models import LogLine
(curve,) = store.read({job}, names=["loss"], points=None)
answer = [curve.steps.tolist(), list(LogLine.objects.order_by("id").values_list("text", flat=True))]
"""


@pytest.fixture
def house(tmp_path, redis_server, migrated):
    made = House(tmp_path, redis_server.url, migrated)
    yield made
    made.end()


def test_it_loses_and_doubles_nothing_while_everything_around_dies(house, redis_server):
    ingests = [house.start("manage.py", "ingest") for _ in range(2)]
    host = Host(redis_server.client(), house.ids["attempt"])
    steps, lines = 3000, 1500

    def write(begin, end):
        host.tell(*[points(step, step + 10) for step in range(begin, end, 10)])
        host.write("logs/worker-0.stdout", "".join(f"line {n}\n" for n in range(begin // 2, end // 2)).encode())

    def shipped():
        host.ship(4000)
        time.sleep(0.1)
        return all(host.committed(source) == len(data) for source, data in host.files.items())

    write(0, 1000)
    wait_for(shipped, seconds=60, what="the first third")
    write(1000, 2000)
    host.ship(4000)
    ingests[0].send_signal(signal.SIGKILL)
    wait_for(shipped, seconds=60, what="the second third, by the survivor")
    write(2000, 3000)
    host.ship(4000)
    redis_server.kill()
    redis_server.start()
    wait_for(shipped, seconds=60, what="the last third, after Redis forgot everything")
    assert house.ask(HELD.format(job=house.ids["job"])) == [list(range(steps)), [f"line {n}" for n in range(lines)]]
    ingests[1].send_signal(signal.SIGTERM)
    assert ingests[1].wait(timeout=10) == 0
    host.client.close()
