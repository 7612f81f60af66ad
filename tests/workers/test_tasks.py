"""launch and stop: twice, late, in the wrong order, or of nonsense."""

from __future__ import annotations

import subprocess
import sys

import pytest
from celery import Celery

from tests.conftest import RedisServer
from tests.workers.host.acknowledging import Receiver
from tests.workers.host.conftest import ROOT, Host, assignment, host
from tests.workers.host.patience import wait_for
from workers.celery import app, broker_url
from workers.contract.events import Spawned
from workers.contract.wire import host_queue
from workers.host import launching

__all__ = ["host"]


@pytest.fixture
def send(host: Host, redis_server: RedisServer):
    """A Celery worker as the host daemon starts it, and what puts a task on its queue."""
    options = ["-A", "workers.celery", "worker", "-Q", host_queue("here"), "-P", "solo", "--loglevel", "WARNING"]
    host.start("celery", *options, "--without-gossip", "--without-mingle", "--without-heartbeat")
    sender = Celery(broker=redis_server.celery_url)
    yield lambda task, argument: sender.send_task(f"workers.tasks.{task}", args=[argument], queue=host_queue("here"))
    sender.close()


def spawned(receiver: Receiver, attempt: int) -> list[str]:
    return [event.target for event in receiver.events(attempt, "supervisor@here") if isinstance(event, Spawned)]


def test_it_launches_once_however_often_it_is_told(host: Host, redis_server: RedisServer, send) -> None:
    launch = assignment("worker-0:hang", workers=1).model_dump(mode="json")
    with Receiver(redis_server.client()) as receiver:
        for _ in range(3):
            send("launch", launch)
        wait_for(lambda: spawned(receiver, 1))
        send("launch", launch)
        send("stop", 1)
        ended = wait_for(lambda: receiver.end(1), what="the end")
        assert ended is not None and ended.outcome == "cancelled"
        wait_for(lambda: host.run_folder().settled)
        send("launch", launch)
        send("stop", 1)
        later = assignment(attempt=2, workers=1).model_dump(mode="json")
        send("launch", later)
        wait_for(lambda: host.run_folder(2).settled, what="an attempt launched after it")
        assert spawned(receiver, 1) == ["worker-0"]
        assert receiver.end(1) == ended


def test_it_cancels_a_launch_that_comes_after_its_stop(host: Host, redis_server: RedisServer, send) -> None:
    with Receiver(redis_server.client()) as receiver:
        send("stop", 1)
        send("launch", assignment("worker-0:hang", workers=1).model_dump(mode="json"))
        ended = wait_for(lambda: receiver.end(1), what="the end")
        assert ended is not None and ended.outcome == "cancelled"
        assert spawned(receiver, 1) == []


def test_it_goes_on_after_a_message_of_nonsense(host: Host, redis_server: RedisServer, send) -> None:
    with Receiver(redis_server.client()) as receiver:
        send("launch", {"attempt": "../../etc"})
        send("launch", ["not", "an", "assignment"])
        send("stop", None)
        send("launch", assignment(workers=1).model_dump(mode="json"))
        ended = wait_for(lambda: receiver.end(1), what="the end of a good one")
        assert ended is not None and ended.outcome == "succeeded"
        assert [path.name for path in host.runs.iterdir()] == ["1"]


def test_it_ends_an_attempt_whose_folder_cannot_be_written(host: Host, redis_server: RedisServer, send) -> None:
    folder = host.run_folder().path
    (folder / "supervisor.log").mkdir(parents=True)  # refused even to root, as a full disk is
    launch = assignment("worker-0:hang", workers=1).model_dump(mode="json")
    with Receiver(redis_server.client()) as receiver:
        send("launch", launch)
        send("launch", launch)
        ended = wait_for(lambda: receiver.end(1), what="the end")
        assert ended is not None and ended.outcome == "failed"
        assert ended.cause.startswith(f"here could not write to {folder}: Is a directory. Make room there")
        assert not host.run_folder().launched, "nobody may start it later"


@pytest.mark.parametrize("attempt", [None, 0, -1, True, "7", "../7", 1.0])
def test_it_refuses_what_is_no_attempt(host: Host, attempt: object) -> None:
    with pytest.raises(ValueError, match="attempt"):
        launching.stop(host.runs, attempt)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="attempt"):
        launching.launch(host.runs, {"attempt": attempt})
    with pytest.raises(ValueError, match="attempt"):
        launching.store(host.runs, attempt)  # type: ignore[arg-type]


def test_it_stores_nothing_of_an_attempt_that_it_does_not_have(host: Host) -> None:
    assert not launching.store(host.runs, 5)
    host.prepare(attempt=6)
    assert not launching.store(host.runs, 6), "it has not ended"
    assert not host.run_folder(6).alive
    assert not host.run_folder(5).path.exists()


@pytest.mark.parametrize(
    ("url", "kombu"),
    [
        ("unix:///run/redis.sock?db=3", "redis+socket:///run/redis.sock?virtual_host=3"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("rediss://user:word@example.org:6380/1", "rediss://user:word@example.org:6380/1"),
    ],
)
def test_it_writes_the_address_of_redis_as_kombu_wants_it(url: str, kombu: str) -> None:
    assert broker_url(url) == kombu


def test_it_speaks_json_only_and_keeps_no_results() -> None:
    assert app.conf.accept_content == ["json"]
    assert app.conf.result_backend is None
    assert {"workers.tasks.launch", "workers.tasks.stop"} <= _tasks()


def _tasks() -> set[str]:
    script = (
        "import sys; from workers.celery import app; app.loader.import_default_modules(); print(*app.tasks);"
        "assert not {'django.db', 'webapp.settings', 'tensorflow'} & set(sys.modules)"
    )
    return set(
        subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
    )
