"""Which files a path means, and their digest."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from workers.contract.files.facts import MOST_FILES, refuse

CHUNK = 2**20


def files_of(path: Path, endings: Sequence[str]) -> list[Path]:
    """The file itself, or those of a folder that end so, by name. Raises SpecInvalid.

    Links that lead out of the folder are refused: whoever fills a folder must not be able to name others' files.
    """
    if path.is_file():
        if not path.stat().st_size:
            refuse("file", "is empty", str(path), "Give a file with data in it")
        return [path]
    if not path.is_dir():
        refuse("file", "is not there", str(path), "Give the path of a file or a folder on this host")
    found = sorted(each for each in path.iterdir() if each.name.endswith(tuple(endings)) and each.is_file())
    if not found:
        refuse("file", f"is a folder without a file that ends in {' or '.join(endings)}", str(path), "Give another")
    if len(found) > MOST_FILES:
        refuse("file", f"holds {len(found):,} files", str(path), f"Join them to at most {MOST_FILES:,}")
    home = path.resolve()
    for each in found:
        if not each.resolve().is_relative_to(home):
            refuse("file", f"holds a link out of the folder, {each.name}", str(path), "Put the file itself there")
        if not each.stat().st_size:
            refuse("file", f"holds an empty file, {each.name}", str(path), "Remove it")
    return found


def digest(files: Sequence[Path]) -> str:
    """SHA-256 of the bytes of all files, one after the other, as hexadecimal digits."""
    sha = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                sha.update(chunk)
    return sha.hexdigest()
