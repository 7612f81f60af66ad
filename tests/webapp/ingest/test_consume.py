"""Ingest with a real Redis: what hosts tell becomes points, log lines, states, and news for the browsers."""

from __future__ import annotations

import json
import math
import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.webapp.ingest.hosts import Host, curve, drain, points
from tests.webapp.jobs.scene import ended, launch, phase
from webapp.cluster.models import Host as HostRow
from webapp.cluster.models import Listening
from webapp.ingest.models import LogLine, Source
from webapp.jobs import services
from webapp.jobs.models import Attempt, Checkpoint, Job, State
from webapp.live import feed
from workers.contract import events as ev
from workers.contract.inventory import DeviceInfo, Inventory
from workers.contract.wire import EVENTS, GROUP, Beat, Hello, attempt_key

pytestmark = pytest.mark.django_db


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


def told(host):
    return [fields for _, fields in host.client.xrange(feed.STREAM)]


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
