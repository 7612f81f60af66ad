"""The artifact store: files that training hosts and web processes share, and what they are called there.

It is a folder that all of them see, or whatever else fsspec opens (`s3://bucket/prefix`): LOCKSTEP_STORE.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import fsspec


def checkpoint_key(job: int, name: str) -> str:
    """The folder of one checkpoint; its manifest is put last."""
    return f"jobs/{job}/checkpoints/{name}"


def _link(source: Path, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or one that knows no links
        shutil.copyfile(source, target)


def artifact_key(job: int, name: str) -> str:
    """One finished file of a job, such as `model.keras`."""
    return f"jobs/{job}/artifacts/{name}"


class Store:
    """Files by key, each put whole or not at all. All methods raise OSError (FileNotFoundError for a missing key)."""

    def __init__(self, url: str) -> None:
        """`url` is a folder's path or an fsspec address. Raises ValueError for a scheme that nothing here can open."""
        self.url = url
        try:
            found = fsspec.url_to_fs(url)
        except ImportError as error:
            raise ValueError(f"LOCKSTEP_STORE: {url} needs a package that is not installed: {error}") from None
        self._fs: Any = found[0]
        self._root = str(found[1]).rstrip("/")
        self._local = "file" in ([self._fs.protocol] if isinstance(self._fs.protocol, str) else self._fs.protocol)

    def put(self, source: Path, key: str) -> None:
        """Copy a local file to `key`; readers see the old one or the whole new one."""
        self._put(source, key, shutil.copyfile)

    def take(self, source: Path, key: str) -> None:
        """As `put`, of a file that nobody writes to any more: on the store's own disk it is not copied."""
        self._put(source, key, _link)

    def _put(self, source: Path, key: str, copy: Callable[[Path, str], object]) -> None:
        final = self._path(key)
        self._fs.makedirs(final.rpartition("/")[0], exist_ok=True)
        if not self._local:
            self._fs.put_file(str(source), final)  # object stores show an object when it is whole
            return
        unfinished = f"{final}.unfinished-{uuid.uuid4().hex[:8]}"
        try:
            copy(source, unfinished)
            Path(unfinished).replace(final)
        finally:
            Path(unfinished).unlink(missing_ok=True)

    def get(self, key: str, target: Path) -> None:
        """Copy `key` to a local file."""
        target.parent.mkdir(parents=True, exist_ok=True)
        self._fs.get_file(self._path(key), str(target))

    def open(self, key: str) -> IO[bytes]:
        """The bytes of `key`, to read and to seek in."""
        return cast("IO[bytes]", self._fs.open(self._path(key), "rb"))

    def size(self, key: str) -> int:
        """Bytes of one file."""
        return int(self._fs.size(self._path(key)))

    def has(self, key: str) -> bool:
        """Whether there is a file or a folder of this key."""
        return bool(self._fs.exists(self._path(key)))

    def names(self, folder: str) -> list[str]:
        """What lies directly in a folder, by name; nothing when there is no such folder."""
        try:
            entries = self._fs.ls(self._path(folder), detail=False, refresh=True)
        except FileNotFoundError:
            return []
        found = (str(entry).rstrip("/").rpartition("/")[2] for entry in entries)
        return sorted(name for name in found if ".unfinished-" not in name)

    def remove(self, key: str) -> None:
        """Remove a file or a folder with all that is in it; it may be gone already."""
        try:
            self._fs.rm(self._path(key), recursive=True)
        except FileNotFoundError:
            return

    def _path(self, key: str) -> str:
        parts = key.split("/")
        if any(part in {"", ".", ".."} for part in parts) or "\0" in key:
            raise ValueError(f"store key: {key!r} is not a plain path. Use names joined by /")
        return f"{self._root}/{key}"
