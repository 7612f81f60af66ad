"""Ingest with a real Redis: whatever is sent twice, late, cut, broken or lost, the database holds each byte once."""

from __future__ import annotations

import json
import logging
import math
import threading
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import wait_for
from tests.webapp.ingest.hosts import Host, points
from tests.webapp.jobs.scene import ended, launch, phase, queue
from webapp.cluster.models import Host as HostRow
from webapp.cluster.models import Listening
from webapp.ingest import batch
from webapp.ingest.consume import Ingest
from webapp.ingest.models import LogLine, Source
from webapp.jobs import services
from webapp.jobs.models import Attempt, Checkpoint, Job, State
from webapp.live import feed
from webapp.metrics import store
from workers.contract import events as ev
from workers.contract.inventory import DeviceInfo, Inventory
from workers.contract.wire import EVENTS, GROUP, Beat, Chunk, Hello, attempt_key

pytestmark = pytest.mark.django_db


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


def drain(ingest):
    while ingest.once(block_ms=20):
        pass


def curve(job, name="loss"):
    (found,) = store.read(job.pk, names=[name], points=None)
    return found


def told(host):
    return [fields for _, fields in host.client.xrange(feed.STREAM)]


def test_it_stores_points_logs_and_progress_and_removes_what_it_took(host, ingest, attempt):
    host.tell(phase("training"), points(0, 100, loss=[math.nan, *range(98), math.inf]))
    host.write("logs/worker-0.stderr", b"first\nsecond\n")
    host.ship()
    drain(ingest)
    values = curve(attempt.job).values.tolist()
    assert math.isnan(values[0])
    assert values[1:] == [*range(98), math.inf]
    rows = LogLine.objects.values_list("job", "attempt", "process", "stream", "text")
    assert list(rows) == [(attempt.job_id, attempt.pk, "worker-0", "stderr", text) for text in ("first", "second")]
    job = Job.objects.get(pk=attempt.job_id)
    assert (job.state, job.step) == (State.RUNNING, 99)
    assert {source: host.committed(source) for source in host.files} == {s: len(d) for s, d in host.files.items()}
    assert 0 < host.client.ttl(attempt_key(attempt.pk)) <= 7 * 24 * 3600
    assert host.client.xlen(EVENTS) == 0
    assert host.client.xpending(EVENTS, GROUP)["pending"] == 0


def test_it_tells_the_browsers_after_the_commit(host, ingest, attempt):
    host.tell(points(0, 3))
    host.ship()
    drain(ingest)
    host.tell(points(3, 5, loss=[math.nan, 2.0]))
    host.write("logs/worker-0.stdout", b"hello\n")
    host.ship()
    drain(ingest)
    news = [fields for fields in told(host) if fields[b"kind"] == b"news"]
    second = json.loads(news[1][b"points"])
    assert second["job"] == attempt.job_id
    (part,) = second["series"]
    assert (part["name"], part["replica"], part["start"]) == ("loss", None, 3)
    assert (part["steps"], part["values"]) == ([3, 4], ["NaN", 2.0])
    (line,) = json.loads(news[1][b"log"])["lines"]
    assert line == {
        "id": LogLine.objects.get().pk, "process": "worker-0", "stream": "stdout", "time": 1.75e9, "text": "hello"
    }  # fmt: skip
    jobs = [fields for fields in told(host) if fields[b"kind"] == b"job"]
    assert int(jobs[0][b"job"]) == attempt.job_id
    assert int(jobs[0][b"team"]) == attempt.job.team_id


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
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


def test_it_takes_late_points_of_an_ended_attempt_but_not_its_state(host, ingest, attempt):
    host.tell(ended("alpha", "succeeded"), source="events/supervisor@alpha")
    host.ship()
    drain(ingest)
    assert Job.objects.get().state == State.SUCCEEDED
    host.tell(phase("training"), points(0, 10))
    host.ship()
    drain(ingest)
    assert Job.objects.get().state == State.SUCCEEDED
    assert curve(attempt.job).count == 10


def test_it_hears_hosts_supervisors_and_itself(host, ingest, attempt):
    inventory = Inventory(
        host="alpha", address="10.0.0.1", cores=2, memory_bytes=1, devices=(DeviceInfo(kind="cpu", index=0, name="c"),)
    )
    host.client.xadd(EVENTS, Hello(inventory.model_dump_json()).fields())
    host.client.xadd(EVENTS, Beat(attempt.pk, "alpha").fields())
    drain(ingest)
    assert HostRow.objects.get().name == "alpha"
    assert attempt.supervisors.get().heard is not None
    assert Listening.objects.count() == 1


def test_it_shows_a_line_without_newline_after_a_while(host, ingest, attempt):
    host.write("logs/worker-0.stdout", b"password? ")
    host.ship()
    drain(ingest)
    assert LogLine.objects.count() == 0
    assert not host.ship()
    Source.objects.update(held_since=timezone.now() - timedelta(seconds=5))
    ingest._next_tick = 0
    drain(ingest)
    (row,) = LogLine.objects.all()
    assert (row.text, row.partial) == ("password? ", True)
    host.write("logs/worker-0.stdout", b"secret\n")
    host.ship()
    drain(ingest)
    assert list(LogLine.objects.values_list("text", flat=True)) == ["password? ", "secret"]


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


def test_it_ends_when_told_and_leaves_no_consumer_behind(ingest, host, attempt, redis_server):
    stop = threading.Event()
    stop.set()
    ingest.stop = stop
    ingest.once(block_ms=1)
    ingest.run()
    assert host.client.xinfo_consumers(EVENTS, GROUP) == []


def test_it_needs_few_queries_however_much_comes(host, ingest, attempt, django_assert_max_num_queries):
    host.tell(points(0, 2))
    host.ship()
    drain(ingest)
    for first in range(2, 400, 2):
        host.tell(points(first, first + 2, loss=[0.0, 1.0], accuracy=[0.0, 1.0]))
    host.write("logs/worker-0.stdout", b"line\n" * 100)
    host.ship(500_000)
    with django_assert_max_num_queries(30):
        ingest.once(block_ms=20)
    assert curve(attempt.job).count == 400


def test_a_resumed_attempt_cuts_the_curves_where_it_began(host, ingest, attempt, redis_server):
    host.tell(phase("training"), points(0, 58), points(50, 58, val_loss=[1.0] * 8))
    host.tell(ended("alpha", "paused"), source="events/supervisor@alpha")
    host.ship()
    drain(ingest)
    job = Job.objects.get(pk=attempt.job_id)
    assert job.state == State.PAUSED
    checkpoint = Checkpoint.objects.create(job=job, attempt=attempt, name="step-50", step=50, stored=timezone.now())
    assert services.resume(job=job)
    assert checkpoint.key.endswith("step-50")
    again = launch(Job.objects.get(pk=job.pk), "alpha")
    Attempt.objects.filter(pk=again.pk).update(resume_step=50)
    second = Host(redis_server.client(), again.pk)
    second.tell(phase("building"), started(), points(51, 55))
    second.ship()
    host.tell(points(58, 60))
    host.ship()
    drain(ingest)
    assert curve(job).steps.tolist() == list(range(55))
    assert curve(job, "val_loss").steps.tolist() == [50]
    job.refresh_from_db()
    assert (job.step, job.segment, job.state) == (54, 2, State.RUNNING)
    second.client.close()


def started():
    figures = dict.fromkeys(("global_batch", "per_replica_batch", "steps_per_epoch", "training_samples"), 10)
    figures |= dict.fromkeys(("validation_samples", "test_samples", "parameters", "steps_per_call"), 1)
    rest = {"replicas": (), "total_steps": 100, "peak_learning_rate": 0.1, "versions": {}}
    return ev.Started(time=1.75e9, process="worker-0", **figures, **rest)
