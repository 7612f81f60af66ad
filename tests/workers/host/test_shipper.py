"""No byte is lost and none is doubled, whatever happens to Redis and to ingest."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import RedisServer
from tests.workers.host.acknowledging import Receiver
from tests.workers.host.conftest import Host
from tests.workers.host.patience import wait_for
from workers.contract.wire import EVENTS, attempt_key
from workers.host import shipper as shipper_module
from workers.host.runs import RunFolder
from workers.host.shipper import WINDOW, Shipper
from workers.host.sources import CHUNK_BYTES


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    for folder in ("events", "logs"):
        (tmp_path / "5" / folder).mkdir(parents=True)
    return RunFolder(tmp_path / "5")


@contextmanager
def shipping(run: RunFolder, redis_server: RedisServer) -> Iterator[Shipper]:
    shipper = Shipper(run, "here", redis_server.url)
    shipper.start()
    yield shipper
    shipper.abandon()
    shipper.join()


def written(run: RunFolder) -> dict[str, bytes]:
    logs = {f"logs/{path.name}": path.read_bytes() for path in (run.path / "logs").iterdir()}
    return logs | {f"events/{path.stem}": path.read_bytes() for path in (run.path / "events").iterdir()}


def received(receiver: Receiver, run: RunFolder) -> dict[str, bytes]:
    return {source: bytes(data) for (attempt, source), data in receiver.files.items() if attempt == run.attempt}


@pytest.mark.parametrize("tags", [("worker-0:write:20000", "worker-1:write:300:10")], ids=["fast and slow"])
def test_it_brings_every_byte_through_a_redis_that_dies_and_comes_back_empty(
    host: Host, redis_server: RedisServer, tags: tuple[str, ...]
) -> None:
    with Receiver(redis_server.client(), forgetful=7) as receiver:
        run = host.supervise(*tags)
        for size in (50_000, 500_000):
            wait_for(lambda size=size: sum(map(len, receiver.files.values())) > size, what=f"{size} bytes")
            redis_server.kill()
            redis_server.start()
        ended = wait_for(lambda: receiver.end(1), what="the end")
        assert ended is not None and ended.outcome == "succeeded"
        wait_for(lambda: run.settled, what="everything to be acknowledged")
        assert received(receiver, run) == written(run)
        assert receiver.largest <= CHUNK_BYTES
        lengths = {name: len(data) for name, data in written(run).items()}
        assert json.loads(run.shipped_file.read_text()) == lengths


def test_it_sends_a_new_line_within_a_moment(run: RunFolder, redis_server: RedisServer) -> None:
    with Receiver(redis_server.client()) as receiver, shipping(run, redis_server):
        wait_for(lambda: receiver.beats)
        delays = []
        for number in range(5):
            line = b'{"number": %d}\n' % number
            with open(run.path / "events/worker-0.jsonl", "ab") as file:
                file.write(line)
            before = time.monotonic()
            wait_for(lambda line=line: receiver.files[5, "events/worker-0"].endswith(line))
            delays.append(time.monotonic() - before)
        assert sorted(delays)[1] < 0.3


def test_it_keeps_a_window_when_nobody_acknowledges(run: RunFolder, redis_server: RedisServer) -> None:
    big = b"x" * 99 + b"\n"
    (run.path / "logs/worker-0.stdout").write_bytes(big * (WINDOW // 50))
    client = redis_server.client()
    with Receiver(redis_server.client()) as receiver:
        receiver.deaf.set()
        with shipping(run, redis_server):
            wait_for(lambda: client.xlen(EVENTS) * CHUNK_BYTES >= WINDOW // 2)
            (run.path / "events/worker-0.jsonl").write_bytes(b"{}\n")
            wait_for(
                lambda: any(f[b"source"] == b"events/worker-0" for _, f in client.xrange(EVENTS) if b"source" in f)
            )
            held = sum(len(fields.get(b"data", b"")) for _, fields in client.xrange(EVENTS))
            assert held <= WINDOW
            receiver.deaf.clear()
            wait_for(lambda: received(receiver, run) == written(run), what="all of it")


def test_it_does_not_fill_redis_while_ingest_is_away(
    run: RunFolder, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipper_module, "STALL_SECONDS", 0.02)
    monkeypatch.setattr(shipper_module, "BEAT_SECONDS", 600.0)
    for name in ("a", "b", "c"):
        (run.path / f"events/{name}.jsonl").write_bytes(b'"line"\n' * 1000)
    client = redis_server.client()
    with shipping(run, redis_server) as shipper:
        wait_for(lambda: client.xlen(EVENTS) > 6, what="each to be sent more than once")
        wait_for(lambda: all(source.patience > 1 for source in shipper._sources.values()))
        assert client.xlen(EVENTS) < 40
        with Receiver(redis_server.client()) as receiver:
            wait_for(lambda: received(receiver, run) == written(run))


def test_it_goes_on_from_what_was_acknowledged_before(run: RunFolder, redis_server: RedisServer) -> None:
    (run.path / "logs/worker-0.stdout").write_bytes(b"old\nnew\n")
    run.shipped_file.write_text(json.dumps({"logs/worker-0.stdout": 4}))
    with Receiver(redis_server.client()) as receiver:
        receiver.files[5, "logs/worker-0.stdout"] += b"old\n"
        with shipping(run, redis_server):
            wait_for(lambda: received(receiver, run) == written(run))
        assert receiver.skipped == 0


def test_it_survives_a_damaged_record_of_what_was_acknowledged(run: RunFolder, redis_server: RedisServer) -> None:
    (run.path / "logs/worker-0.stdout").write_bytes(b"old\nnew\n")
    run.shipped_file.write_text('{"logs/worker')
    with Receiver(redis_server.client()) as receiver, shipping(run, redis_server):
        wait_for(lambda: received(receiver, run) == written(run))


def test_it_is_complete_only_when_all_is_acknowledged(run: RunFolder, redis_server: RedisServer) -> None:
    (run.path / "logs/worker-0.stdout").write_bytes(b"no newline")
    client = redis_server.client()
    with shipping(run, redis_server) as shipper:
        shipper.finish()
        wait_for(lambda: client.xlen(EVENTS) >= 2, what="the line and a beat")
        assert not shipper.complete.wait(0.3)
        client.hset(attempt_key(5), "logs/worker-0.stdout", len(b"no newline"))
        assert shipper.complete.wait(5)


def test_it_holds_the_last_word_back_until_all_else_has_arrived(run: RunFolder, redis_server: RedisServer) -> None:
    (run.path / "events" / "worker-0.jsonl").write_bytes(b'{"type":"points"}\n' * 40_000)  # several pieces
    (run.path / "logs" / "worker-0.stderr").write_bytes(b"half a line")
    (run.path / "events" / "supervisor@here.jsonl").write_bytes(b'{"time":1.0,"type":"ended"}\n')
    sizes: list[tuple[str, int]] = []

    def all_else_is_here(receiver: Receiver) -> bool:
        sizes[:] = [(source, len(data)) for (_, source), data in receiver.files.items()]
        return any(source == "events/supervisor@here" and size for source, size in sizes)

    with Receiver(redis_server.client()) as receiver, shipping(run, redis_server) as shipper:
        wait_for(lambda: receiver.files.get((5, "events/worker-0")), what="the first piece")
        assert not receiver.files.get((5, "events/supervisor@here"))
        shipper.finish()
        wait_for(lambda: all_else_is_here(receiver), what="the last word")
        assert dict(sizes) == {source: len(data) for source, data in written(run).items()}
        wait_for(shipper.complete.is_set, what="completion")
