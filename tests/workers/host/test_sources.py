"""How files are cut into pieces: whole lines, whole characters, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.host.sources import CHUNK_BYTES, Source, discover, whole_characters


def drain(source: Source, *, final: bool = False, now: float = 100.0) -> list[bytes]:
    pieces = []
    while piece := source.next_piece(now, final=final):
        pieces.append(piece)
        source.sent_piece(len(piece), b"1-0", now)
    return pieces


@pytest.fixture
def log(tmp_path: Path) -> Source:
    return Source("logs/a.stdout", tmp_path / "a.stdout", lines_only=False)


@pytest.fixture
def events(tmp_path: Path) -> Source:
    return Source("events/a", tmp_path / "a.jsonl", lines_only=True)


def test_it_finds_files_as_they_appear(tmp_path: Path) -> None:
    known: dict[str, Source] = {}
    discover(tmp_path, known)
    for name in ("events/worker-0.jsonl", "logs/worker-0.stderr", "logs/notes.txt", "events/.hidden.partial"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    discover(tmp_path, known)
    assert sorted(known) == ["events/worker-0", "logs/worker-0.stderr"]


def test_it_sends_events_as_whole_lines_only(events: Source) -> None:
    events.path.write_bytes(b"one\ntwo\nthr")
    assert drain(events) == [b"one\ntwo\n"]
    assert drain(events, final=True) == []
    events.path.write_bytes(b"one\ntwo\nthree\n")
    assert drain(events) == [b"three\n"]


def test_it_sends_an_event_longer_than_a_chunk_in_one_piece(events: Source) -> None:
    line = b"x" * (3 * CHUNK_BYTES) + b"\n"
    events.path.write_bytes(line[:-1])
    assert drain(events) == []
    events.path.write_bytes(line + b"short\n")
    assert drain(events) == [line, b"short\n"]


def test_it_waits_a_second_for_the_end_of_a_log_line(log: Source) -> None:
    log.path.write_bytes(b"progress 10 %")
    assert log.next_piece(100.0, final=False) == b""
    assert log.next_piece(100.9, final=False) == b""
    assert log.next_piece(101.1, final=False) == b"progress 10 %"


def test_it_waits_anew_for_each_unfinished_line(log: Source) -> None:
    log.path.write_bytes(b"one")
    assert log.next_piece(100.0, final=False) == b""
    log.path.write_bytes(b"one\ntwo")
    assert drain(log, now=105.0) == [b"one\n"]
    assert log.next_piece(105.5, final=False) == b""


def test_it_sends_an_unfinished_line_at_once_when_all_is_over(log: Source) -> None:
    log.path.write_bytes("Größe".encode()[:4])
    assert drain(log, final=True) == ["Größe".encode()[:4]]


@pytest.mark.parametrize("shift", range(5))
def test_it_never_splits_a_character(log: Source, shift: int) -> None:
    text = b"a" * shift + "🙂".encode() * (CHUNK_BYTES // 2)
    log.path.write_bytes(text)
    pieces = drain(log, final=True)
    assert b"".join(pieces) == text
    assert len(pieces) > 1
    assert all(len(piece) <= CHUNK_BYTES and piece.decode() for piece in pieces)


@pytest.mark.parametrize(
    ("data", "sent"),
    [
        (b"abc", b"abc"),
        ("aß".encode(), "aß".encode()),
        ("aß".encode()[:-1], b"a"),
        ("a🙂".encode()[:-1], b"a"),
        ("a🙂".encode()[:-3], b"a"),
        (b"\xff\xfe\x80\x80\x80", b"\xff\xfe\x80\x80\x80"),
        (b"\xf0", b"\xf0"),
        (b"", b""),
    ],
)
def test_it_keeps_back_only_the_beginning_of_a_character(data: bytes, sent: bytes) -> None:
    assert whole_characters(data) == sent


def test_it_goes_back_when_less_is_committed_than_before(log: Source) -> None:
    log.path.write_bytes(b"one\ntwo\n")
    drain(log)
    assert log.acknowledge(8, 101.0)
    assert not log.acknowledge(8, 102.0)
    assert log.acknowledge(4, 103.0)
    assert drain(log) == [b"two\n"]
