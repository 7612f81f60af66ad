"""`python -m tests.bench.live`: from a host's file to a browser's socket, through Redis, ingest and uvicorn."""

# ruff: noqa: E402
from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
import django

django.setup()

from websockets.sync.client import connect

from tests.conftest import RedisServer, wait_for
from tests.webapp.ingest.hosts import Host, points
from tests.webapp.ingest.house import House
from tests.webapp.live.test_server import LOGIN, answers, free_port

ROUNDS = 200


def measure(house: House, server: RedisServer) -> list[float]:
    """Seconds from handing a chunk to Redis until its points are in the socket's hands."""
    port = free_port()
    house.start("manage.py", "ingest")
    house.start("-m", "uvicorn", "webapp.asgi:application", "--port", str(port), "--log-level", "warning")
    wait_for(lambda: answers(port), seconds=60, what="uvicorn")
    cookie = {"Cookie": f"sessionid={house.ask(LOGIN)['alice']}"}
    host, spent = Host(server.client(), house.ids["attempt"]), []
    address = f"ws://127.0.0.1:{port}/ws/jobs/{house.ids['job']}/"
    with connect(address, origin=f"http://127.0.0.1:{port}", additional_headers=cookie) as page:
        page.recv(timeout=20)
        sent = 0
        for step in range(ROUNDS):
            host.tell(points(step, step + 1))
            begun, end = time.perf_counter(), len(host.files["events/worker-0"])
            host.send("events/worker-0", sent, end)
            sent = end
            while True:
                message = json.loads(page.recv(timeout=20))
                if message["type"] == "points" and message["series"][-1]["steps"][-1] == step:
                    break
            spent.append(time.perf_counter() - begun)
            time.sleep(0.15)
    return sorted(spent)


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="ls-bench-"))
    server = RedisServer(folder).start()
    house = None
    try:
        house = House(folder, server.url)
        spent = measure(house, server)
    finally:
        if house is not None:
            house.end()
        server.kill()
    p50, p95 = statistics.median(spent), spent[int(len(spent) * 0.95)]
    print(f"chunk in Redis to points in the socket: p50 {p50 * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, {ROUNDS} rounds")
    print("best peer, log call to the polled API: p50 60 ms, p95 100 ms (MLflow)")


if __name__ == "__main__":
    main()
