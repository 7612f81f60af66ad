"""What a job left in the artifact store, streamed to browsers piece by piece: one file, or a checkpoint as a zip."""

from __future__ import annotations

import asyncio
import contextlib
import zipfile
from collections.abc import AsyncIterator, Generator, Iterator
from typing import IO

from django.http import StreamingHttpResponse

from workers.contract.store import Store

BLOCK = 1 << 20
Pieces = Generator[bytes, None, None]


def file_response(store: Store, key: str, name: str) -> StreamingHttpResponse:
    """The file `key`, to be saved as `name`. Raises OSError when it cannot be opened."""
    size = store.size(key)
    return _attachment(_blocks(store.open(key)), name, size)


def zip_response(store: Store, folder: str, name: str) -> StreamingHttpResponse:
    """All files below `folder` as a zip, to be saved as `name`. Raises OSError when it cannot be read."""
    files = list(_files(store, folder))
    if not files:
        raise FileNotFoundError(folder)
    return _attachment(_zipped(store, folder, files), name)


def _attachment(pieces: Pieces, name: str, size: int | None = None) -> StreamingHttpResponse:
    response = StreamingHttpResponse(_from_thread(pieces), content_type=_type_of(name))
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    # Weights do not shrink; naming an encoding keeps the gzip middleware from trying, and from dropping the length.
    response["Content-Encoding"] = "identity"
    if size is not None:
        response["Content-Length"] = str(size)
    return response


def _type_of(name: str) -> str:
    return "application/zip" if name.endswith(".zip") else "application/octet-stream"


async def _from_thread(pieces: Pieces) -> AsyncIterator[bytes]:
    """Each piece is read in a thread: a slow store holds up nobody else."""
    try:
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece
    finally:
        with contextlib.suppress(ValueError):  # the browser went while a piece was being read
            pieces.close()


def _blocks(file: IO[bytes]) -> Pieces:
    with file:
        while block := file.read(BLOCK):
            yield block


def _files(store: Store, folder: str, below: str = "") -> Iterator[str]:
    """The files below a folder of the store, by their paths in it."""
    for name in store.names(f"{folder}/{below}".rstrip("/")):
        path = f"{below}{name}"
        if store.names(f"{folder}/{path}") in ([], [name]):
            yield path
        else:
            yield from _files(store, folder, f"{path}/")


class _Sink:
    """What zipfile writes to: it cannot seek, and is emptied after each block."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes, /) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        return

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken


def _zipped(store: Store, folder: str, files: list[str]) -> Pieces:
    """A zip of them, not compressed: weights hardly shrink."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for path in files:
            with store.open(f"{folder}/{path}") as source, archive.open(path, "w", force_zip64=True) as target:
                while block := source.read(BLOCK):
                    target.write(block)
                    yield sink.take()
    yield sink.take()
