"""`python -m tests.bench.store`: what the series store and ingest cost, beside the best of the peers.

Uses an SQLite file (or DATABASE_URL) and a Redis of its own, both thrown away afterwards.
"""

# ruff: noqa: E402
from __future__ import annotations

import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(tempfile.mkdtemp(prefix="lockstep-bench-"))
os.environ.setdefault("DATABASE_URL", f"sqlite:///{FOLDER / 'bench.sqlite3'}")
os.environ |= {"LOCKSTEP_HOME": str(FOLDER), "HTTPS": "0", "DJANGO_SETTINGS_MODULE": "webapp.settings"}

import django

django.setup()

import numpy as np
from django.core.management import call_command
from django.db import connection

from tests.conftest import RedisServer
from tests.webapp.jobs.scene import launch, queue
from webapp.ingest.consume import Ingest
from webapp.metrics import store
from webapp.metrics.models import Block
from webapp.teams.models import Team, User
from workers.contract import events as ev
from workers.contract.wire import EVENTS, Chunk

MILLION = 1_000_000
BIG = 1_000_000
"""An owner that is no job of the later benches; those of the comparison begin at 1,000,001."""
rows: list[tuple[str, str, str]] = []


def report(what: str, ours: str, best_peer: str) -> None:
    rows.append((what, ours, best_peer))
    print(f"{what:<62} {ours:>24}   best peer: {best_peer}", flush=True)


def timed(action, repeat=5):
    """Median seconds."""
    spent = []
    for _ in range(repeat):
        begun = time.perf_counter()
        action()
        spent.append(time.perf_counter() - begun)
    return statistics.median(spent)


def losses(count: int, seed: int = 1) -> np.ndarray:
    """A loss as the engine reports it: float32 noise around a falling curve."""
    noise = np.random.default_rng(seed).normal(0, 0.1, count)
    return (2.3 * np.exp(-np.arange(count) / (count / 4)) + noise).astype(np.float32).astype(np.float64)


def fill(owner: int, count: int, parts: int) -> None:
    values = losses(count, owner)
    times = 1.75e9 + np.cumsum(np.random.default_rng(owner).normal(0.01, 0.001, count))
    edges = np.linspace(0, count, parts + 1).astype(int)
    for begin, end in itertools.pairwise(edges):
        steps = range(begin, end)
        part = {"steps": steps, "times": times[begin:end], "values": values[begin:end]}
        store.append([store.batch(owner=owner, name="loss", **part)])


def bench_store() -> None:
    begun = time.perf_counter()
    fill(BIG, MILLION, 250)
    report(
        "store: append 1,000,000 points in 250 batches", f"{MILLION / (time.perf_counter() - begun):,.0f} points/s", "-"
    )
    stored = sum(len(a) + len(b) + len(c) + 120 for a, b, c in Block.objects.values_list("steps", "times", "values"))
    report(
        "bytes stored a point (row overhead included)",
        f"{stored / MILLION:.1f} B",
        "43 B (TensorBoard), 114 B (Trackio)",
    )
    for points in (10_000, 100_000, MILLION):
        seconds = timed(lambda points=points: store.read(BIG, names=["loss"], last=points - 1, points=2000))
        report(
            f"one series of {points:,} points, thinned to 2,000",
            f"{seconds * 1000:.1f} ms",
            "61 ms (TensorBoard, spike lost)",
        )
    for owner in range(BIG + 1, BIG + 501):
        fill(owner, 1000, 2)
    for runs in (10, 100, 500):
        seconds = timed(lambda runs=runs: store.overview(range(BIG + 1, BIG + 1 + runs), names=["loss"], points=1000))
        peer = {10: "60 ms", 100: "620 ms", 500: "3,000 ms"}[runs]
        report(f"compare {runs} runs x 1,000 points", f"{seconds * 1000:.1f} ms", peer)
    seconds = timed(lambda: store.summaries(range(BIG + 1, BIG + 501), names=["loss"]))
    report("final, best, min and max of 500 runs", f"{seconds * 1000:.1f} ms", "-")


def job_of(team: Team, owner: User):
    spec = {"version": "lockstep/v1", "name": "bench", "dataset": {"name": "digits"}, "model": {"name": "mlp"}}
    spec |= {"strategy": {"name": "one_device"}, "training": {"epochs": 1}}
    return launch(queue(team, owner, spec), "alpha")


def event(first: int, count: int, names: list[str]) -> bytes:
    steps = list(range(first, first + count))
    times = [1.75e9 + step / 100 for step in steps]
    values = losses(count, first + 1).tolist()
    series = [ev.SeriesPoints(name=name, steps=steps, times=times, values=values) for name in names]
    return ev.to_line(ev.Points(time=times[-1], process="worker-0", step=steps[-1], epoch=1, series=series))


def bench_ingest(clients: int, per_event: int) -> None:
    names = ["loss", "accuracy", "throughput", "step_time", "learning_rate"]
    team, _ = Team.objects.get_or_create(slug="bench", name="Bench")
    owner, _ = User.objects.get_or_create(username="bench")
    attempts = [job_of(team, owner) for _ in range(clients)]
    folder = Path(tempfile.mkdtemp(prefix="ls-bench-"))
    server = RedisServer(folder).start()
    wire, total = server.client(), 0
    for attempt in attempts:
        offset = 0
        for begin in range(0, 400_000 // len(names) // clients, per_event * 4):
            data = b"".join(event(begin + part * per_event, per_event, names) for part in range(4))
            wire.xadd(EVENTS, Chunk(attempt.pk, "events/worker-0", offset, data, 1.0).fields())
            offset += len(data)
            total += 4 * per_event * len(names)
    os.environ["REDIS_URL"] = server.url
    from django.conf import settings

    settings.REDIS_URL = server.url
    ingest = Ingest(server.url)
    begun, busy = time.perf_counter(), time.process_time()
    try:
        while wire.xlen(EVENTS):
            ingest.once(block_ms=1)
        spent, busy = time.perf_counter() - begun, time.process_time() - busy
        stored = sum(sum(store.counts(attempt.job_id).values()) for attempt in attempts)
        assert stored == total, f"{stored} points of {total}"
    finally:
        server.kill()
    peer = {1: "86,000", 4: "138,000"}.get(clients, "138,000") + " (Trackio)"
    report(
        f"ingest: {clients} job(s), 5 series, {per_event} steps an event",
        f"{total / spent:,.0f}/s ({total / busy:,.0f} per CPU s)",
        peer,
    )


def main() -> None:
    call_command("migrate", verbosity=0)
    bench_store()
    for clients, per_event in ((1, 50), (1, 10), (4, 50), (20, 10)):
        bench_ingest(clients, per_event)
    print(f"\ndatabase: {connection.vendor}; Python {sys.version.split()[0]}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
