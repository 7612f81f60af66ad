"""What cannot be read or stored never stands in the way of the rest."""

from __future__ import annotations

import logging

import pytest
from django.db import OperationalError

from tests.webapp.ingest.hosts import Host, curve, drain, points
from webapp.ingest import batch
from webapp.ingest.models import LogLine, Source
from workers.contract import events as ev
from workers.contract.wire import EVENTS, Chunk, Hello, attempt_key

pytestmark = pytest.mark.django_db


def test_it_keeps_what_it_cannot_read_as_a_log_line_and_goes_on(host, ingest, attempt, caplog):
    good = ev.to_line(points(0, 2))
    uneven = good.replace(b'"steps":[0,1]', b'"steps":[0]')
    huge = good.replace(b'"steps":[0,1]', b'"steps":[0,9223372036854775808]')
    host.write("events/worker-0", b'{"type":"nonsense"}\nnot json\n' + uneven + huge + b"\xff\xfe\x00\n" + good)
    host.ship()
    with caplog.at_level(logging.CRITICAL):
        drain(ingest)
    assert curve(attempt.job).steps.tolist() == [0, 1]
    rows = list(LogLine.objects.values_list("process", "stream", "text"))
    assert len(rows) == 5
    assert all(row[:2] == ("worker-0", "stderr") and "[lockstep]" in row[2] for row in rows)
    assert "not json" in rows[1][2]


def test_it_leaves_out_only_the_event_that_the_database_refuses(host, ingest, attempt, caplog):
    too_far = points(10, 12).model_copy(update={"step": 2**80})
    host.tell(points(0, 5), too_far, points(5, 9))
    host.write("logs/worker-0.stdout", b"alive\n")
    host.ship(100_000)
    with caplog.at_level(logging.CRITICAL + 1):
        drain(ingest)
    assert curve(attempt.job).steps.tolist() == list(range(9))
    texts = list(LogLine.objects.order_by("id").values_list("text", flat=True))
    assert sorted(text[:30] for text in texts) == ["[lockstep] a points event coul", "alive"]
    assert not host.ship()


def test_it_passes_entries_of_the_stream_that_are_no_messages(host, ingest, attempt, caplog):
    host.client.xadd(EVENTS, {"kind": "riddle"})
    host.client.xadd(EVENTS, {"kind": "chunk", "attempt": "x"})
    host.client.xadd(EVENTS, Chunk(attempt.pk, "../../etc/passwd", 0, b"x", 1.0).fields())
    host.client.xadd(EVENTS, Chunk(2**70, "events/worker-0", 0, b"x", 1.0).fields())
    host.client.xadd(EVENTS, Hello('{"host": 1}').fields())
    host.tell(points(0, 3))
    host.ship()
    with caplog.at_level(logging.CRITICAL + 1):
        drain(ingest)
    assert curve(attempt.job).count == 3
    assert host.client.xlen(EVENTS) == 0


def test_it_tells_the_hosts_of_an_attempt_that_does_not_exist_to_stop(host, ingest, attempt, caplog):
    stranger = Host(host.client, attempt.pk + 1000)
    stranger.write("logs/worker-0.stdout", b"hello\n")
    stranger.ship()
    with caplog.at_level(logging.CRITICAL + 1):
        drain(ingest)
    assert host.client.hget(attempt_key(stranger.attempt), "order") == b"void"
    assert not stranger.ship()
    assert Source.objects.count() == 0


def test_it_retries_while_the_database_is_away(host, ingest, attempt, monkeypatch, caplog):
    real, failures = batch.take, iter(range(3))

    def flaky(chunks, *, careful=False):
        if next(failures, None) is not None:
            raise OperationalError("database is locked")
        return real(chunks, careful=careful)

    monkeypatch.setattr(batch, "take", flaky)
    monkeypatch.setattr("webapp.ingest.consume.connection.close", lambda: None)  # the test's transaction lives in it
    host.tell(points(0, 10))
    host.ship()
    with caplog.at_level(logging.CRITICAL + 1):
        drain(ingest)
    assert curve(attempt.job).count == 10
