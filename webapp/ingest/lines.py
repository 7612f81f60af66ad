"""Bytes of a log to lines of text: nothing lost, nothing doubled, wherever the chunks were cut."""

from __future__ import annotations

import codecs
from typing import NamedTuple

PIECE = 16 * 1024
"""Bytes of a line that are kept in one row; a longer line becomes several."""


class Piece(NamedTuple):
    """A line, or a part of one that another part follows."""

    text: str
    partial: bool


class Cut(NamedTuple):
    """What of a log can be stored now; `held` waits for its newline, `shown` when pieces of its line went before."""

    pieces: list[Piece]
    held: bytes
    shown: bool


def split(held: bytes, shown: bool, data: bytes) -> Cut:
    """The lines that `data` completes after what was `held`."""
    *lines, rest = (held + data).split(b"\n")
    pieces: list[Piece] = []
    for line in lines:
        if line or not shown:
            parts = _parts(line)
            pieces += [Piece(text_of(part), True) for part in parts[:-1]]
            pieces.append(Piece(text_of(parts[-1]), False))
        shown = False
    *early, rest = _parts(rest)
    pieces += [Piece(text_of(part), True) for part in early]
    return Cut(pieces, rest, shown or bool(early))


def flush(held: bytes) -> Cut:
    """What has waited long enough is shown without its newline; half a character waits on, unless it is all."""
    whole = _whole(held) or held
    return Cut([Piece(text_of(whole), True)], held[len(whole) :], True)


def text_of(raw: bytes) -> str:
    """As text that any database takes: what is not UTF-8, and NUL, become their escapes."""
    return raw.decode("utf-8", "backslashreplace").replace("\x00", "\\x00")


def _parts(line: bytes) -> list[bytes]:
    parts, start = [], 0
    while len(line) - start > PIECE:
        part = line[start : start + PIECE]
        parts.append(_whole(part) or part)
        start += len(parts[-1])
    return [*parts, line[start:]]


def _whole(raw: bytes) -> bytes:
    """Without the beginning of a character at the end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(raw)
    waiting = len(decoder.getstate()[0])
    return raw[:-waiting] if waiting else raw
