"""Checkpoints and models on their way into the artifact store and back, beside a stand-in that really runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.conftest import RedisServer
from tests.workers.host.acknowledging import Receiver
from tests.workers.host.conftest import Host, assignment
from tests.workers.host.patience import wait_for
from workers.contract.events import Ended, NotStored, Phase, Stored
from workers.contract.wire import ORDER, SAVE, attempt_key
from workers.host.runs import RunFolder

T = TypeVar("T")


@pytest.fixture
def receiver(redis_server: RedisServer) -> Iterator[Receiver]:
    with Receiver(redis_server.client()) as listening:
        yield listening


def told(receiver: Receiver, kind: type[T], attempt: int = 1) -> list[T]:
    return [event for event in receiver.events(attempt, "supervisor@here") if isinstance(event, kind)]


def ended(receiver: Receiver, attempt: int = 1) -> Ended:
    return wait_for(lambda: receiver.end(attempt), what="the end")


def begun(receiver: Receiver, workers: int = 2) -> None:
    for index in range(workers):
        wait_for(lambda name=f"worker-{index}": len(receiver.events(1, name)) > 1, what="the training")


def test_a_pause_ends_with_a_checkpoint_in_the_store(host: Host, receiver: Receiver, redis_server: RedisServer) -> None:
    host.supervise("worker-0:train", "worker-1:train")
    begun(receiver)
    redis_server.client().hset(attempt_key(1), ORDER, "pause")
    assert ended(receiver).outcome == "paused"
    assert host.store.open("jobs/7/checkpoints/step-10/weights/w.bin").read() == b"weights at 10"
    [stored] = told(receiver, Stored)
    assert (stored.kind, stored.name) == ("checkpoint", "step-10")
    assert stored.bytes == sum(
        path.stat().st_size for path in host.run_folder().checkpoints.rglob("*") if path.is_file()
    )


def test_a_checkpoint_is_saved_when_asked_and_asked_again(
    host: Host, receiver: Receiver, redis_server: RedisServer
) -> None:
    host.supervise("worker-0:train", "worker-1:train")
    begun(receiver)
    redis = redis_server.client()
    for request, name in (("1", "step-10"), ("2", "step-20")):
        redis.hset(attempt_key(1), SAVE, request)
        wait_for(lambda name=name: name in {one.name for one in told(receiver, Stored)}, what=name)
    assert receiver.end(1) is None
    redis.hset(attempt_key(1), ORDER, "stop")
    assert ended(receiver).outcome == "cancelled"
    assert host.store.names("jobs/7/checkpoints") == ["step-10", "step-20"]


def test_the_model_is_in_the_store_before_the_end_is_told(host: Host, receiver: Receiver) -> None:
    run = host.supervise("worker-0:save:10-20", workers=1)
    assert ended(receiver).outcome == "succeeded"
    assert [one.name for one in told(receiver, Stored)] == ["step-10", "step-20", "model.keras"]
    assert host.store.open("jobs/7/artifacts/model.keras").read() == b"weights"
    assert run.stored_file.exists()


def test_an_attempt_goes_on_from_the_store(host: Host, receiver: Receiver) -> None:
    host.supervise("worker-0:save:10", workers=1)
    ended(receiver)
    run = resumed(host, "jobs/7/checkpoints/step-10")
    assert ended(receiver, 2).outcome == "succeeded"
    phases = [event.detail for event in receiver.events(2, "worker-0") if isinstance(event, Phase)]
    assert "weights at 10" in phases
    assert not run.resume.exists()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "weights/w.bin").write_text("other"), "weights/w.bin is not what manifest.json says"),
        (lambda folder: (folder / "weights/w.bin").unlink(), "weights/w.bin is missing"),
        (shutil.rmtree, "the store holds no jobs/7/checkpoints/step-10/manifest.json"),
    ],
)
def test_a_checkpoint_that_cannot_be_had_fails_the_attempt(
    host: Host, receiver: Receiver, damage: Callable[[Path], object], words: str
) -> None:
    host.supervise("worker-0:save:10", workers=1)
    ended(receiver)
    damage(Path(host.store.url) / "jobs/7/checkpoints/step-10")
    resumed(host, "jobs/7/checkpoints/step-10")
    end = ended(receiver, 2)
    assert end.outcome == "failed"
    assert "could not fetch the checkpoint to go on from, jobs/7/checkpoints/step-10" in end.cause
    assert words in end.cause


def test_a_store_that_comes_back_gets_everything(host: Host, receiver: Receiver) -> None:
    store = away(host)
    host.supervise("worker-0:save:10", workers=1)
    wait_for(lambda: "cannot store step-10" in log_of(host), what="the first failure")
    assert receiver.end(1) is None
    store.unlink()
    assert ended(receiver).outcome == "succeeded"
    assert {one.name for one in told(receiver, Stored)} == {"step-10", "model.keras"}


def test_a_store_that_stays_away_is_told_with_the_place_of_the_files(host: Host, receiver: Receiver) -> None:
    away(host)
    host.env["LOCKSTEP_STORE_PATIENCE"] = "1"
    run = host.supervise("worker-0:save:10", workers=1)
    assert ended(receiver).outcome == "succeeded"
    left = told(receiver, NotStored)
    assert [(one.name, one.host, one.path) for one in left] == [
        ("step-10", "here", str(run.checkpoints / "step-10")),
        ("model.keras", "here", str(run.path / "model.keras")),
    ]
    assert "store failed" in left[0].cause
    assert not run.stored_file.exists()


def test_what_a_store_could_not_take_is_stored_when_it_is_asked_for_again(host: Host, receiver: Receiver) -> None:
    store = away(host)
    host.env["LOCKSTEP_STORE_PATIENCE"] = "1"
    run = host.supervise("worker-0:save:10", workers=1)
    ended(receiver)
    wait_for(lambda: run.settled, what="the end of its supervisor")
    host.processes[0].wait(10)
    settled = run.settled_file.stat().st_mtime_ns
    assert host.start("workers.host.supervisor", str(run.path)).wait(30) == 0
    assert not run.over, "the store is still away"
    store.unlink()
    assert host.start("workers.host.supervisor", str(run.path)).wait(30) == 0
    wait_for(lambda: len(told(receiver, Stored)) == 2, what="the news")
    assert {one.name for one in told(receiver, Stored)} == {"step-10", "model.keras"}
    assert len(told(receiver, NotStored)) == 2, "what is known is not told again"
    assert run.over
    assert run.settled_file.stat().st_mtime_ns == settled, "its age counts from its end"
    assert host.store.open("jobs/7/checkpoints/step-10/weights/w.bin").read() == b"weights at 10"


def away(host: Host) -> Path:
    """A file where the store's folder should be: nothing can be put below it."""
    path = Path(host.store.url)
    path.write_text("not a folder")
    return path


def log_of(host: Host) -> str:
    return host.output.read_text()


def resumed(host: Host, key: str) -> RunFolder:
    run = host.run_folder(2)
    given = assignment("worker-0:go_on", attempt=2, workers=1).model_copy(update={"resume": key})
    run.accept(given.model_dump(mode="json"))
    host.start("workers.host.supervisor", str(run.path))
    return run
