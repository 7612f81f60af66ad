"""Looks at plain text: that it is UTF-8 all through, how long it is, and which characters there are."""

from __future__ import annotations

import codecs
from pathlib import Path

from workers.contract.files.facts import MOST_CHARACTERS, Facts, Part, refuse
from workers.contract.files.parts import CHUNK, digest, files_of

MOST_TEXT_BYTES = 256 * 2**20
"""All of it is held in memory, four bytes for each token."""


def inspect_text(path: Path, length: int) -> Facts:
    """Facts of a text file that is to be cut into windows of `length` tokens. Raises SpecInvalid."""
    if path.is_dir():
        refuse("file", "is a folder", str(path), "Give one text file")
    [file] = files_of(path, (".txt",))
    size = file.stat().st_size
    if size > MOST_TEXT_BYTES:
        refuse("file", f"has {size:,} bytes", file.name, f"Keep at most {MOST_TEXT_BYTES:,}")
    count, characters = _read(file)
    if count <= length:
        message = f"has {count:,} characters, too few for one window of {length:,} and the character after it"
        refuse("file", message, file.name, f"Give a text of at least {length + 1:,} characters")
    if len(characters) < 2:
        refuse("file", "holds one character again and again", file.name, "Give a text with something to learn")
    return Facts(
        kind="text",
        samples=count,
        bytes=size,
        sha256=digest([file]),
        parts=(Part(name=file.name, samples=count, bytes=size),),
        alphabet="".join(sorted(characters)) if len(characters) <= MOST_CHARACTERS else "",
    )


def _read(file: Path) -> tuple[int, set[str]]:
    """How many characters, and the different ones. Raises SpecInvalid at the first byte that is no text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    count = place = 0
    found: set[str] = set()
    with file.open("rb") as stream:
        while True:
            chunk = stream.read(CHUNK)
            waiting = len(decoder.getstate()[0])
            if (nul := chunk.find(b"\0")) >= 0:
                refuse("file", f"is not text: there is a NUL at byte {place + nul:,}", file.name, "Give plain text")
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                where = place - waiting + error.start
                refuse("file", f"is not UTF-8 text at byte {where:,}", file.name, "Save the file as UTF-8")
            count, place = count + len(text), place + len(chunk)
            found.update(text)
            if not chunk:
                return count, found
