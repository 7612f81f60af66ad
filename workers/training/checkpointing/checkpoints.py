"""The format of a checkpoint: a folder of plain arrays and a manifest, that any strategy can go on from.

`step-<N>/state.npz` holds every array whole, by a name that no strategy changes (state.py); `manifest.json` is written
last and has the digest of it. Both are written into a folder whose name begins with a dot, which is then renamed: a
folder without the dot is whole, unless the disk itself has lost something.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError

from workers.contract.base import Strict
from workers.contract.document import VERSION
from workers.contract.keeping import CHECKPOINT_NAME
from workers.contract.spec import JobSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = "checkpoints"
"""Of the run folder."""
MANIFEST = "manifest.json"
STATE = "state.npz"
RESERVE_BYTES = 16 * 2**20
"""Left free on the disk: the events of the job go there as well, and it cannot do without them."""


class CheckpointError(Exception):
    """A checkpoint that cannot be gone on from; the message is one sentence that names it and says why."""


class ArrayInfo(Strict):
    """One array of the state."""

    shape: tuple[int, ...]
    dtype: str


class FileInfo(Strict):
    """One file of the folder."""

    bytes: int
    sha256: str


class Best(Strict):
    """The best value so far of the metric that a job keeps its best checkpoint by."""

    metric: str
    value: float
    name: str


class Waiting(Strict):
    """Where early stopping stands: the best value so far, and the epochs without a better one."""

    best: float | None = None
    waited: int = 0


class Manifest(Strict):
    """What a checkpoint says of itself. `spec` is the job's, as it was; `metrics` are the newest values then.

    The order of the data follows from the spec's seed, so `samples_seen` is the whole position in it.
    """

    version: Literal["lockstep/v1"] = VERSION
    name: str = Field(pattern=CHECKPOINT_NAME)
    step: int = Field(ge=0)
    samples_seen: int = Field(ge=0)
    time: float
    spec: JobSpec
    metrics: dict[str, float] = Field(default_factory=dict)
    best: Best | None = None
    early_stopping: Waiting = Field(default_factory=Waiting)
    arrays: dict[str, ArrayInfo] = Field(default_factory=dict)
    files: dict[str, FileInfo] = Field(default_factory=dict)


def write(folder: Path, manifest: Manifest, arrays: Mapping[str, NDArray[Any]]) -> Manifest:
    """Write `folder/<name>` whole or not at all; returns the manifest with its arrays and files. Raises OSError."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    _check_space(folder, sum(array.nbytes for array in arrays.values()))
    unfinished, final = folder / f".{manifest.name}.{os.getpid()}", folder / manifest.name
    earlier = folder / f".{manifest.name}.{os.getpid()}.earlier"
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir()
        np.savez(unfinished / STATE, allow_pickle=False, **dict(arrays))
        infos = {name: ArrayInfo(shape=array.shape, dtype=str(array.dtype)) for name, array in arrays.items()}
        manifest = manifest.model_copy(update={"arrays": infos, "files": {STATE: _synced(unfinished / STATE)}})
        (unfinished / MANIFEST).write_text(manifest.model_dump_json(indent=1))
        _synced(unfinished / MANIFEST)
        _sync_folder(unfinished)
        if final.exists():
            # Of an earlier run that came as far; it goes whole, since a folder cannot be renamed over another one.
            final.rename(earlier)
        unfinished.rename(final)
        _sync_folder(folder)
    finally:
        for path in (unfinished, earlier):
            shutil.rmtree(path, ignore_errors=True)
    return manifest


def read_manifest(checkpoint: Path) -> Manifest:
    """What a checkpoint says of itself, its files unseen. Raises CheckpointError."""
    try:
        said = json.loads((checkpoint / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        what = f"has no {MANIFEST}: it is torn, or not a checkpoint" if checkpoint.exists() else "is not there"
        raise CheckpointError(f"{checkpoint} {what}.") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{checkpoint} is torn: its {MANIFEST} cannot be read ({error}).") from None
    version = said.get("version") if isinstance(said, dict) else None
    if version != VERSION:
        raise CheckpointError(f"{checkpoint} is of version {version}, and this Lockstep reads {VERSION}.")
    try:
        return Manifest.model_validate(said)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise CheckpointError(f"{checkpoint} is torn: its {MANIFEST} makes no sense at {where}.") from None


def validate(checkpoint: Path) -> Manifest:
    """The manifest of a whole checkpoint, every byte of it read. Raises CheckpointError."""
    manifest = read_manifest(checkpoint)
    for name, info in manifest.files.items():
        fault = _fault(checkpoint / name, info)
        if fault:
            raise CheckpointError(f"{checkpoint} is torn: {name} {fault}.")
    if STATE not in manifest.files:
        raise CheckpointError(f"{checkpoint} is torn: its {MANIFEST} names no {STATE}.")
    return manifest


def read_arrays(checkpoint: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a checkpoint by name. Raises CheckpointError."""
    import numpy as np

    try:
        with np.load(checkpoint / STATE, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{checkpoint} is torn: {STATE} cannot be read ({error}).") from None


def among(folder: Path) -> list[Path]:
    """The checkpoints of a folder, whole or not, the newest first."""
    found = [path for path in folder.glob("step-*") if re.match(CHECKPOINT_NAME, path.name) and path.is_dir()]
    return sorted(found, key=step_of, reverse=True)


def step_of(checkpoint: Path) -> int:
    """The step that a checkpoint's name says."""
    return int(checkpoint.name.removeprefix("step-"))


def newest(folder: Path, fits: Callable[[Manifest], bool] = lambda manifest: True) -> Path | None:
    """The newest whole checkpoint of a folder that `fits`."""
    for path in among(folder):
        with suppress(CheckpointError):
            if fits(validate(path)):
                return path
    return None


def sweep(folder: Path) -> None:
    """Remove what was being written when an earlier process died."""
    for path in folder.glob(".step-*"):
        shutil.rmtree(path, ignore_errors=True)


def _check_space(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < wanted + RESERVE_BYTES:
        raise OSError(28, f"No space left: {wanted:,} bytes are wanted and {free:,} free", str(folder))


def _synced(file: Path) -> FileInfo:
    """On the disk for good."""
    with file.open("rb+") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return FileInfo(bytes=file.stat().st_size, sha256=digest)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _fault(file: Path, info: FileInfo) -> str:
    """What is wrong with a file, empty when nothing is."""
    try:
        size = file.stat().st_size
        if size != info.bytes:
            return f"has {size:,} bytes instead of {info.bytes:,}"
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return "" if digest == info.sha256 else "is not what was written (its digest differs)"
