"""Zip files of others: nothing in one is believed before it was looked at."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path, PurePosixPath

from workers.contract.files.facts import refuse

MOST_ENTRIES = 5_000_000
MOST_ENTRY_BYTES = 8 * 2**30
MOST_RATIO = 1_100
"""Deflate cannot do better than 1,032 to 1."""


def entries_of(path: Path) -> list[zipfile.ZipInfo]:
    """The files in it. Raises SpecInvalid for what is torn, encrypted, a link, or leads out of the archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, ValueError, NotImplementedError) as error:
        refuse("file", f"is not a zip file or is torn ({error})", path.name, "Pack it again")
    if len(entries) > MOST_ENTRIES:
        refuse("file", f"holds {len(entries):,} files", path.name, f"Keep at most {MOST_ENTRIES:,}")
    names = set()
    for entry in entries:
        _check(entry, path)
        if entry.filename in names:
            refuse("file", f"holds {entry.filename} twice", path.name, "Pack it again")
        names.add(entry.filename)
    return entries


def _check(entry: zipfile.ZipInfo, path: Path) -> None:
    name = entry.filename
    if entry.flag_bits & 1:
        refuse("file", f"is encrypted ({name})", path.name, "Pack it again without a password")
    if name.startswith(("/", "\\")) or ".." in PurePosixPath(name.replace("\\", "/")).parts or ":" in name[:3]:
        refuse("file", f"holds a name that leads out of it ({name[:100]})", path.name, "Pack it again")
    if stat.S_ISLNK(entry.external_attr >> 16):
        refuse("file", f"holds a link ({name})", path.name, "Pack the file itself")
    if entry.file_size > MOST_ENTRY_BYTES or entry.file_size > max(2**20, entry.compress_size * MOST_RATIO):
        refuse("file", f"holds {name}, which would unpack to {entry.file_size:,} bytes", path.name, "Pack it again")
