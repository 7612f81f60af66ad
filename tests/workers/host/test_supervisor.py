"""The supervisor as a real process, its gang a stand-in, its words heard at the other end of the wire."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.conftest import RedisServer
from tests.workers.host.acknowledging import Receiver
from tests.workers.host.conftest import Host, assignment
from tests.workers.host.patience import wait_for
from workers.contract.events import Ended, Exited, Phase, PhaseName, Spawned, to_line
from workers.contract.wire import ORDER, attempt_key
from workers.gang import leftovers
from workers.host.journal import Journal, was_at_work


def end_of(receiver: Receiver, attempt: int = 1) -> Ended:
    ended = wait_for(lambda: receiver.end(attempt), what="the end")
    assert ended is not None
    return ended


def test_it_tells_a_run_from_start_to_end(host: Host, redis_server: RedisServer) -> None:
    with Receiver(redis_server.client()) as receiver:
        run = host.supervise()
        assert end_of(receiver).outcome == "succeeded"
        wait_for(lambda: run.settled, what="everything to be acknowledged")
        assert host.processes[0].wait(5) == 0
        told = receiver.events(1, "supervisor@here")
        spawned = [event for event in told if isinstance(event, Spawned)]
        assert [(event.target, event.devices) for event in spawned] == [
            ("worker-0", ("cpu:0",)),
            ("worker-1", ("cpu:1",)),
        ]
        assert {event.target: event.code for event in told if isinstance(event, Exited)} == {
            "worker-0": 0,
            "worker-1": 0,
        }
        assert receiver.files[1, "logs/worker-0.stdout"] == b"worker-0 does finish\n"
        assert receiver.beats
        assert (run.path / "model.keras").read_bytes() == b"weights"


@pytest.mark.parametrize(
    ("tags", "target", "cause"),
    [
        (("worker-0:hang", "worker-1:exit:3"), "worker-1", "worker-1 exited with code 3."),
        (
            ("worker-0:hang", "worker-1:signal:9"),
            "worker-1",
            "worker-1 was killed by SIGKILL (often the system's out-of",
        ),
        (("worker-0:hang", "worker-1:signal:11"), "worker-1", "worker-1 crashed with SIGSEGV."),
        (("worker-0:fail:peer", "worker-1:later:nan"), "worker-1", "worker-1 failed of nan"),
        (("worker-0:fail:peer", "worker-1:signal:9"), "worker-1", "worker-1 was killed by SIGKILL"),
        (("worker-0:fail:peer", "worker-1:hang"), "worker-0", "worker-0 failed of peer"),
        (("worker-0:out_of_memory", "worker-1:hang"), "worker-0", "worker-0 ran out of memory. Its log says:"),
    ],
)
def test_it_finds_the_cause_of_a_failure(
    host: Host, redis_server: RedisServer, tags: tuple[str, ...], target: str, cause: str
) -> None:
    with Receiver(redis_server.client()) as receiver:
        run = host.supervise(*tags)
        ended = end_of(receiver)
        assert (ended.outcome, ended.target) == ("failed", target)
        assert ended.cause.startswith(cause)
        assert leftovers(run.path) == []


@pytest.mark.parametrize(
    ("tags", "outcome", "target"),
    [
        (("worker-0:linger", "worker-1:desert"), "succeeded", None),
        (("worker-0:give_up", "worker-1:desert"), "failed", "worker-0"),
        (("worker-0:linger", "worker-1:signal:9"), "failed", "worker-1"),
    ],
)
def test_it_goes_on_without_a_spare_process_once_that_has_trained(
    host: Host, redis_server: RedisServer, tags: tuple[str, ...], outcome: str, target: str | None
) -> None:
    with Receiver(redis_server.client()) as receiver:
        run, given = host.run_folder(), assignment(*tags)
        spare = given.processes[1].model_copy(update={"essential": False})
        given = given.model_copy(update={"processes": (given.processes[0], spare)})
        run.accept(given.model_dump(mode="json"))
        host.start("workers.host.supervisor", str(run.path))
        ended = end_of(receiver)
        assert (ended.outcome, ended.target) == (outcome, target)
        exits = {e.target: e.signal for e in receiver.events(1, "supervisor@here") if isinstance(e, Exited)}
        assert exits["worker-1"] == "SIGKILL"


@pytest.mark.parametrize(("phase", "spare"), [("connecting", False), ("training", True), ("predicting", True)])
def test_a_spare_process_is_one_that_has_begun_to_work(tmp_path: Path, phase: PhaseName, spare: bool) -> None:
    file = tmp_path / "events" / "worker-1.jsonl"
    file.parent.mkdir()
    file.write_bytes(to_line(Phase(time=1.0, process="worker-1", phase=phase)))
    assert was_at_work(tmp_path, "worker-1") == spare
    assert not was_at_work(tmp_path, "worker-2")


def test_it_sends_the_tail_of_the_log_with_a_failure(host: Host, redis_server: RedisServer) -> None:
    with Receiver(redis_server.client()) as receiver:
        host.supervise("worker-0:exit:1", workers=1)
        assert end_of(receiver).log_tail == "it went wrong"


def test_it_ends_all_at_the_first_death_even_what_ignores_term(host: Host, redis_server: RedisServer) -> None:
    with Receiver(redis_server.client()) as receiver:
        run = host.supervise("worker-0:deaf", "worker-1:hang", "worker-2:family", workers=3)
        wait_for(lambda: (run.path / "worker-0.deaf").exists() and (run.path / "worker-2.family").exists())
        victim = wait_for(lambda: [e for e in Journal(run.path, "here").read() if isinstance(e, Spawned)])[1]
        os.kill(victim.pid, signal.SIGKILL)
        ended = end_of(receiver)
        assert (ended.outcome, ended.target) == ("failed", "worker-1")
        ends = {e.target: e.time for e in receiver.events(1, "supervisor@here") if isinstance(e, Exited)}
        assert abs(ended.time - ends["worker-1"]) < 0.1 < ends["worker-0"] - ends["worker-1"]
        assert leftovers(run.path) == []


def test_it_stops_at_once_when_asked(host: Host, redis_server: RedisServer) -> None:
    with Receiver(redis_server.client()) as receiver:
        run = host.supervise("worker-0:hang", "worker-1:hang")
        wait_for(lambda: receiver.events(1, "worker-1"))
        before = time.monotonic()
        run.ask_to_stop()
        assert end_of(receiver).outcome == "cancelled"
        assert time.monotonic() - before < 3
        wait_for(lambda: run.settled)


def test_it_stops_by_the_order_in_redis_when_no_celery_worker_is_up(host: Host, redis_server: RedisServer) -> None:
    with Receiver(redis_server.client()) as receiver:
        host.supervise("worker-0:hang", "worker-1:hang")
        wait_for(lambda: receiver.events(1, "worker-1"))
        redis_server.client().hset(attempt_key(1), ORDER, "stop")
        ended = end_of(receiver)
        assert (ended.outcome, ended.cause) == ("cancelled", "Stopped by request.")


def test_it_starts_nothing_when_the_stop_came_first(host: Host, redis_server: RedisServer) -> None:
    with Receiver(redis_server.client()) as receiver:
        host.run_folder().ask_to_stop()
        run = host.supervise("worker-0:hang")
        assert end_of(receiver).outcome == "cancelled"
        assert not (run.path / "places").exists()


def test_it_ends_a_gang_that_the_control_plane_has_given_up(host: Host, redis_server: RedisServer) -> None:
    with Receiver(redis_server.client()) as receiver:
        run = host.supervise("worker-0:hang", "worker-1:deaf")
        wait_for((run.path / "worker-1.deaf").exists)
        redis_server.client().hset(attempt_key(1), ORDER, "void")
        ended = end_of(receiver)
        assert ended.outcome == "failed"
        assert "given this attempt" in ended.cause
        assert leftovers(run.path) == []


def test_it_refuses_an_assignment_that_it_cannot_read(host: Host, redis_server: RedisServer) -> None:
    run = host.run_folder()
    run.accept({"attempt": 1, "version": "lockstep/v9", "job": 7})
    with Receiver(redis_server.client()) as receiver:
        host.start("workers.host.supervisor", str(run.path))
        ended = end_of(receiver)
        assert ended.outcome == "failed"
        assert "version" in ended.cause


def test_it_leaves_a_run_to_the_supervisor_that_lives(host: Host, redis_server: RedisServer) -> None:
    run = host.supervise("worker-0:hang", workers=1)
    pid = wait_for(lambda: run.supervisor_pid)
    second = host.start("workers.host.supervisor", str(run.path))
    assert second.wait(60) == 0
    assert run.supervisor_pid == pid


def test_it_takes_its_processes_along_when_killed_and_its_successor_tells_the_end(
    host: Host, redis_server: RedisServer
) -> None:
    with Receiver(redis_server.client()) as receiver:
        run = host.supervise("worker-0:deaf", "worker-1:family")
        wait_for(lambda: (run.path / "worker-0.deaf").exists() and (run.path / "worker-1.family").exists())
        host.processes[0].kill()
        host.processes[0].wait()
        wait_for(lambda: len(leftovers(run.path)) == 2, what="only the children of worker-1 to be left")
        host.start("workers.host.supervisor", str(run.path))
        ended = end_of(receiver)
        assert ended.outcome == "failed"
        assert "supervisor on here died" in ended.cause
        assert leftovers(run.path) == []
        wait_for(lambda: run.settled)


def test_it_writes_why_when_the_host_shuts_down_and_leaves_the_rest_to_the_next_start(
    host: Host, redis_server: RedisServer
) -> None:
    redis_server.kill()
    run = host.supervise("worker-0:hang", workers=1)
    wait_for((run.path / "logs/worker-0.stdout").exists)
    wait_for(lambda: (run.path / "logs/worker-0.stdout").stat().st_size)
    host.processes[0].terminate()
    assert host.processes[0].wait(60) == 0
    assert not run.settled
    redis_server.start()
    with Receiver(redis_server.client()) as receiver:
        host.start("workers.host.supervisor", str(run.path))
        ended = end_of(receiver)
        assert ended.cause == "The training host here was shut down."
        wait_for(lambda: run.settled)


def test_it_says_which_folder_it_wants(host: Host) -> None:
    host.runs.mkdir()
    process = host.start("workers.host.supervisor", str(host.runs))
    assert process.wait(60) == 2
