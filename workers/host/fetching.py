"""Brings what an attempt needs out of the artifact store: `python -m workers.host.fetching RUN`.

That is the checkpoint that it goes on from, to `RUN/resume`, and the library's files that its spec names.

A process of its own, so that the supervisor, which may have no threads before it has forked, tells all the while that
it lives and hears a stop.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from workers.contract.store import Store
from workers.host import library
from workers.host.runs import RunFolder
from workers.host.settings import HostSettings
from workers.host.storing import MANIFEST

BLOCK = 1 << 20


class Damaged(ValueError):
    """A file of the checkpoint is not what its manifest says."""


def fetch(store: Store, key: str, target: Path) -> None:
    """Copy the checkpoint `key` to the folder `target`, whole or not at all.

    Raises OSError when the store does not have it or cannot be reached, and Damaged.
    """
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    _copy(store, key, partial)
    if not (partial / MANIFEST).exists():
        raise FileNotFoundError(f"the store holds no {key}/{MANIFEST}")
    _check(partial)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


def _copy(store: Store, key: str, target: Path) -> None:
    for name in store.names(key):
        below = f"{key}/{name}"
        if store.names(below) and not _is_file(store, below):
            _copy(store, below, target / name)
        else:
            store.get(below, target / name)


def _is_file(store: Store, key: str) -> bool:
    """`names` of a file is, by fsspec, the file itself."""
    return store.names(key) == [key.rpartition("/")[2]]


def _check(folder: Path) -> None:
    """Each file that the manifest names must be there with its digest."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    files: dict[str, Any] = manifest.get("files", {}) if isinstance(manifest, dict) else {}
    for name, told in files.items():
        path = folder / name
        if not path.is_file():
            raise Damaged(f"{name} is missing")
        digest = told.get("sha256") if isinstance(told, dict) else None
        if digest is not None and digest != _digest(path):
            raise Damaged(f"{name} is not what {MANIFEST} says: its sha256 differs")


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """0 when it is there, 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m workers.host.fetching", description=__doc__)
    parser.add_argument("run", type=Path, help="the attempt's run folder")
    run, settings = RunFolder(parser.parse_args().run.resolve()), HostSettings()
    assignment, url = run.assignment(), settings.lockstep_store
    try:
        what = "an uploaded file"
        library.deliver(assignment.spec, url, settings.library)
        if assignment.resume is not None:
            what = f"the checkpoint to go on from, {assignment.resume}"
            fetch(Store(url), assignment.resume, run.resume)
    except (OSError, ValueError) as error:
        host = settings.lockstep_host
        print(f"{host} could not fetch {what} from the artifact store {url}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
