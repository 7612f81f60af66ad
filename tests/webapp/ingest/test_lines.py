"""Logs cut anywhere come out whole."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.ingest.lines import PIECE, Piece, _whole, flush, split, text_of


def run(data: bytes, cuts: list[int], flushes: set[int]) -> list[Piece]:
    """Feed `data` cut at `cuts`, flushing what is held after the chunks whose numbers are in `flushes`."""
    pieces: list[Piece] = []
    held, shown = b"", False
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        new, held, shown = split(held, shown, data[start:end])
        pieces += new
        assert len(held) <= PIECE
        if number in flushes and _whole(held):
            new, held, shown = flush(held)
            pieces += new
    while held:
        new, held, shown = flush(held)
        pieces += new
    return pieces


def joined(pieces: list[Piece]) -> str:
    return "".join(piece.text + ("" if piece.partial else "\n") for piece in pieces)


LINES = st.lists(st.text(max_size=30), max_size=20).map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))


@given(LINES, st.lists(st.integers(0, 10_000), max_size=10), st.sets(st.integers(0, 10)))
def test_it_loses_and_doubles_nothing_of_a_text_wherever_it_is_cut(data, cuts, flushes):
    expected = text_of(data)
    got = joined(run(data, cuts, flushes))
    # Of a line that was flushed before its newline, the newline itself has no row.
    assert got.replace("\n", "") == expected.replace("\n", "")
    if not flushes:
        assert got == expected


@given(st.binary(max_size=200), st.lists(st.integers(0, 10_000), max_size=10))
def test_it_keeps_bytes_that_are_no_text_as_escapes(data, cuts):
    assert joined(run(data, cuts, set())) == text_of(data)
    assert "\x00" not in text_of(data)


@pytest.mark.parametrize("length", [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 200_000])
@pytest.mark.parametrize("letter", ["x", "é", "🜂"])
def test_it_cuts_a_long_line_between_characters(length, letter):
    line = letter * (length // len(letter.encode()))
    pieces = run(line.encode() + b"\nnext\n", [length // 3, length // 2], set())
    assert pieces[-1] == Piece("next", False)
    assert "".join(piece.text for piece in pieces[:-1]) == line
    assert all(len(piece.text.encode()) <= PIECE for piece in pieces)
    assert [piece.partial for piece in pieces[:-1]] == [True] * (len(pieces) - 2) + [False]


def test_it_adds_no_empty_line_when_the_newline_comes_after_the_flush():
    first = split(b"", False, b"Epoch 1 ")
    shown = flush(first.held)
    assert shown.pieces == [Piece("Epoch 1 ", True)]
    rest = split(shown.held, shown.shown, b"\n\nEpoch 2\n")
    assert rest.pieces == [Piece("", False), Piece("Epoch 2", False)]


def test_it_waits_for_the_rest_of_a_character():
    half = "näh".encode()[:2]
    shown = flush(half)
    assert shown.pieces == [Piece("n", True)]
    assert split(shown.held, shown.shown, "näh".encode()[2:] + b"\n").pieces == [Piece("äh", False)]
    assert flush(shown.held).pieces == [Piece("\\xc3", True)]
