"""The host daemon as a real process, with its Celery worker and its supervisors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import psutil
import pytest
from celery import Celery

from tests.conftest import RedisServer
from tests.workers.host.acknowledging import Receiver
from tests.workers.host.conftest import ROOT, Host, assignment
from tests.workers.host.patience import wait_for
from workers.contract.inventory import Inventory
from workers.contract.wire import host_queue
from workers.gang import leftovers
from workers.host import celery_worker
from workers.host.runs import RunFolder
from workers.host.settings import HostSettings


class Sender:
    """Puts tasks on the host's queue as the control plane does."""

    def __init__(self, redis_server: RedisServer) -> None:
        self._app = Celery(broker=redis_server.celery_url)

    def __call__(self, task: str, argument: Any) -> None:
        self._app.send_task(f"workers.tasks.{task}", args=[argument], queue=host_queue("here"))

    def close(self) -> None:
        self._app.close()


@pytest.fixture
def send(redis_server: RedisServer) -> Any:
    sender = Sender(redis_server)
    yield sender
    sender.close()


def celery_of(daemon: subprocess.Popen[bytes]) -> psutil.Process | None:
    children = [child for child in psutil.Process(daemon.pid).children() if child.status() != psutil.STATUS_ZOMBIE]
    return next((child for child in children if "workers.celery" in child.cmdline()), None)


def at_work(run: RunFolder) -> bool:
    output = run.path / "logs/worker-0.stdout"
    return output.exists() and output.stat().st_size > 0


def test_it_says_what_the_host_is(host: Host, redis_server: RedisServer) -> None:
    with Receiver(redis_server.client()) as receiver:
        host.start("workers.host")
        inventory = Inventory.model_validate_json(wait_for(lambda: receiver.hellos)[0].inventory)
        assert inventory.host == "here"
        assert inventory.address == "127.0.0.1"
        assert len([device for device in inventory.devices if device.kind == "cpu"]) >= 4
        assert inventory.versions["python"].startswith("3.11")
        assert inventory.memory_bytes == psutil.virtual_memory().total


def test_it_carries_a_job_from_the_queue_to_its_end_through_every_death(
    host: Host, redis_server: RedisServer, send: Sender
) -> None:
    """The Celery worker, Redis and the daemon itself are killed under one running job."""
    with Receiver(redis_server.client()) as receiver:
        daemon = host.start("workers.host")
        launch = assignment("worker-0:deaf", "worker-1:write:300:20").model_dump(mode="json")
        send("launch", launch)
        run = host.run_folder()
        wait_for(lambda: at_work(run), what="the job to start")
        supervisor = run.supervisor_pid

        celery = wait_for(lambda: celery_of(daemon))
        celery.kill()
        again = wait_for(
            lambda: (new := celery_of(daemon)) and new.pid != celery.pid and new, what="a new Celery worker"
        )
        redis_server.kill()
        redis_server.start()
        send("launch", launch)
        queue = redis_server.client()
        wait_for(lambda: queue.llen(host_queue("here")) == 0, what="Celery to take up its queue again")

        daemon.kill()
        daemon.wait()
        wait_for(lambda: not again.is_running() or again.status() == "zombie", what="Celery to end with the daemon")
        daemon = host.start("workers.host")
        wait_for(lambda: any(1 in Inventory.model_validate_json(h.inventory).attempts for h in receiver.hellos))
        assert run.supervisor_pid == supervisor

        send("stop", 1)
        ended = wait_for(lambda: receiver.end(1), what="the end")
        assert ended is not None and ended.outcome == "cancelled"
        wait_for(lambda: run.settled)
        assert leftovers(run.path) == []
        for stream in ("stdout", "stderr"):
            name = f"worker-1.{stream}"
            assert bytes(receiver.files[1, f"logs/{name}"]) == (run.path / "logs" / name).read_bytes()


def test_it_tells_the_end_of_a_run_whose_supervisor_was_killed(host: Host, redis_server: RedisServer) -> None:
    with Receiver(redis_server.client()) as receiver:
        host.start("workers.host")
        run = host.supervise("worker-0:family", workers=1)
        wait_for((run.path / "worker-0.family").exists)
        host.processes[1].kill()
        host.processes[1].wait()
        ended = wait_for(lambda: receiver.end(1), what="the end")
        assert ended is not None and "supervisor on here died" in ended.cause
        assert leftovers(run.path) == []
        wait_for(lambda: run.settled)


def test_it_starts_a_celery_worker_again_that_takes_no_tasks(
    host: Host, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(celery_worker, "STUCK_SECONDS", 0.1)
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    worker = celery_worker.CeleryWorker(HostSettings(lockstep_host="here"))
    try:
        worker.tend()
        stuck = worker.pid
        os.kill(stuck, signal.SIGSTOP)
        wait_for(lambda: worker.hear_queue(1) or worker.pid != stuck, what="another worker")
        assert not psutil.pid_exists(stuck)
    finally:
        worker.stop()


def test_it_leaves_running_jobs_alone_when_it_ends(host: Host, redis_server: RedisServer) -> None:
    daemon = host.start("workers.host")
    run = host.supervise("worker-0:hang", workers=1)
    wait_for(lambda: at_work(run))
    wait_for(lambda: celery_of(daemon))
    daemon.terminate()
    assert daemon.wait(60) == 0
    assert run.alive
    assert len(leftovers(run.path)) == 1


def test_it_ends_running_jobs_with_itself_when_told_to(host: Host, redis_server: RedisServer) -> None:
    host.env["LOCKSTEP_END_WITH_HOST"] = "1"
    with Receiver(redis_server.client()) as receiver:
        daemon = host.start("workers.host")
        run = host.supervise("worker-0:deaf", workers=1)
        wait_for((run.path / "worker-0.deaf").exists)
        wait_for(lambda: receiver.hellos)
        before = time.monotonic()
        daemon.send_signal(signal.SIGINT)
        assert daemon.wait(60) == 0
        assert time.monotonic() - before < 8
        assert not run.alive
        assert leftovers(run.path) == []
        ended = wait_for(lambda: receiver.end(1))
        assert ended is not None and ended.cause == "The training host here was shut down."


def test_it_refuses_a_second_daemon_on_the_same_folders(host: Host, redis_server: RedisServer) -> None:
    host.start("workers.host")
    wait_for((host.runs / "host.lock").exists)
    answer = subprocess.run(
        [sys.executable, "-m", "workers.host"],
        cwd=ROOT,
        env=host.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 2
    assert "LOCKSTEP_RUNS" in answer.stderr


def test_it_names_a_setting_that_is_wrong(host: Host) -> None:
    env = {**host.env, "LOCKSTEP_PORT_RANGE": "9-1", "LOCKSTEP_HOST": "a b"}
    answer = subprocess.run(
        [sys.executable, "-m", "workers.host"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 2
    assert "LOCKSTEP_PORT_RANGE" in answer.stderr
    assert "LOCKSTEP_HOST" in answer.stderr
    assert os.path.exists(host.runs) is False
