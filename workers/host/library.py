"""The files of the library that jobs of this host need: fetched once from the artifact store, kept by their content."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import time
from pathlib import Path

from workers.contract.library import file_key, local_path, localized, references
from workers.contract.spec import JobSpec
from workers.contract.store import Store

KEEP_DAYS = 30
log = logging.getLogger(__name__)


class Torn(OSError):
    """What the store holds is not what was uploaded."""


def deliver(spec: JobSpec, store: str, folder: Path) -> JobSpec:
    """The spec with each file of the library on this host and named by its path.

    Raises OSError when the store has it no more or cannot be read, ValueError for a store that nothing here opens.
    """
    found = references(spec)
    if not found:
        return spec
    for kind, reference in found.items():
        fetch(Store(store), reference.sha256, getattr(spec, kind).name, folder)
    return localized(spec, folder)


def fetch(store: Store, sha256: str, format_name: str, folder: Path) -> Path:
    """The file of that content, fetched unless it is here. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = local_path(folder, sha256, format_name)
    with open(folder / f".{sha256}.lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            partial = target.with_name(f".{target.name}.partial")
            try:
                store.get(file_key(sha256), partial)
                if digest(partial) != sha256:
                    raise Torn(f"the artifact store holds other bytes than were uploaded as {sha256[:12]}")
                partial.chmod(0o400)
                partial.replace(target)
            finally:
                partial.unlink(missing_ok=True)
        target.touch()
    return target


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sweep(folder: Path, *, days: float = KEEP_DAYS) -> int:
    """Remove what no job has asked for in so many days; the store still has it. How many files went."""
    if not folder.is_dir():
        return 0
    oldest = time.time() - days * 24 * 3600
    old = [path for path in folder.iterdir() if path.is_file() and path.stat().st_mtime < oldest]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)
