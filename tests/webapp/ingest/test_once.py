"""Whatever is sent twice, late, cut or lost, the database holds each byte once."""

from __future__ import annotations

import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import wait_for
from tests.webapp.ingest.hosts import curve, drain, points
from webapp.ingest.consume import Ingest
from webapp.ingest.models import LogLine, Source
from webapp.metrics import store
from workers.contract.wire import EVENTS, attempt_key

pytestmark = pytest.mark.django_db


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    sent=st.lists(st.tuples(st.booleans(), st.integers(0, 9999), st.integers(1, 900), st.booleans()), max_size=15),
    size=st.integers(50, 2000),
)
def test_it_commits_each_byte_once_in_whatever_order_chunks_come(sent, size, host, ingest, attempt):
    Source.objects.all().delete()
    LogLine.objects.all().delete()
    store.forget([attempt.job_id])
    host.client.flushall()
    ingest._ahead.clear()
    host.files.clear()
    host.tell(*[points(first, first + 7) for first in range(0, 70, 7)])
    host.write("logs/worker-0.stdout", "".join(f"línea {n}\n" for n in range(40)).encode())
    for events, begin, length, now in sent:
        source = "events/worker-0" if events else "logs/worker-0.stdout"
        start = begin % len(host.files[source])
        host.send(source, start, start + length)
        if now:
            drain(ingest)
    wait_for(lambda: (drain(ingest), not host.ship(size))[1], what="everything committed")
    assert curve(attempt.job).steps.tolist() == list(range(70))
    assert list(LogLine.objects.values_list("text", flat=True)) == [f"línea {n}" for n in range(40)]


def test_it_waits_a_moment_for_the_chunk_before(host, ingest, attempt):
    host.write("logs/worker-0.stdout", b"one\ntwo\n")
    host.send("logs/worker-0.stdout", 4, 8)
    drain(ingest)
    assert LogLine.objects.count() == 0
    host.send("logs/worker-0.stdout", 0, 4)
    drain(ingest)
    assert list(LogLine.objects.values_list("text", flat=True)) == ["one", "two"]
    assert host.client.xlen(EVENTS) == 0


def test_it_drops_a_chunk_whose_predecessor_stays_away_and_says_what_is_committed(host, ingest, attempt, monkeypatch):
    monkeypatch.setattr("webapp.ingest.consume.AHEAD_SECONDS", 0.05)
    host.write("logs/worker-0.stdout", b"one\ntwo\n")
    host.send("logs/worker-0.stdout", 4, 8)

    def gone():
        drain(ingest)
        return host.client.xlen(EVENTS) == 0

    wait_for(gone, what="the chunk to be dropped")
    assert host.client.hget(attempt_key(attempt.pk), "logs/worker-0.stdout") == b"0"
    assert LogLine.objects.count() == 0


def test_it_takes_over_from_a_consumer_that_died(host, ingest, attempt, redis_server, monkeypatch):
    monkeypatch.setattr("webapp.ingest.inbox.DEAD_AFTER_MS", 1)
    dead = Ingest(redis_server.url)
    host.tell(points(0, 10))
    host.ship()
    assert len(dead.inbox.receive(20)) == 1
    ingest._next_claim = 0
    wait_for(lambda: (ingest.once(block_ms=20), host.client.xlen(EVENTS) == 0)[1], what="the takeover")
    assert curve(attempt.job).count == 10
    dead.inbox.connection.close()


def test_it_commits_again_nothing_after_dying_between_commit_and_acknowledgement(host, ingest, attempt, monkeypatch):
    host.tell(points(0, 10))
    host.write("logs/worker-0.stdout", b"once\n")
    host.ship()
    with monkeypatch.context() as patch:
        patch.setattr(ingest.inbox, "done", lambda *_: None)  # the process is gone before it acknowledges
        drain(ingest)
    assert host.ship()
    drain(ingest)
    assert not host.ship()
    assert curve(attempt.job).count == 10
    assert LogLine.objects.count() == 1


def test_it_goes_on_with_a_redis_that_lost_its_memory(host, ingest, attempt, redis_server, caplog):
    host.tell(*[points(first, first + 10) for first in range(0, 100, 10)])
    host.ship(300)
    with caplog.at_level(logging.CRITICAL + 1):
        ingest.once(block_ms=20)
        host.ship(300)
        redis_server.kill()
        redis_server.start()
        wait_for(lambda: (drain(ingest), not host.ship(300))[1], what="everything committed")
    assert curve(attempt.job).steps.tolist() == list(range(100))
