"""Looks through the HDF5 file of a model's weights: HDF5 can link to other files, and promise arrays that it lacks."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import h5py

from workers.contract.keras_file import AGAIN, WEIGHTS
from workers.contract.problems import Problem, SpecInvalid

MAX_OBJECTS = 100_000
MAX_BYTES = 4 * 2**30
NUMBERS = "fiub"


def check(path: Path) -> int:
    """The bytes of all arrays. Raises SpecInvalid for links, and for arrays that are elsewhere or nowhere."""
    with zipfile.ZipFile(path) as archive:
        content = io.BytesIO(archive.read(WEIGHTS))
    try:
        with h5py.File(content, "r") as file:
            return _walk(file)
    except (OSError, KeyError, RuntimeError, TypeError) as error:
        raise _refused(f"cannot be read as HDF5 ({str(error)[:200]})", None) from None


def _walk(file: h5py.File) -> int:
    total, seen = 0, {file.id.__hash__()}
    waiting: list[tuple[str, h5py.Group]] = [("", file)]
    while waiting:
        path, group = waiting.pop()
        for name in group:
            where = f"{path}/{name}"
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise _refused("links to something outside of itself", where)
            found = group[name]
            address = h5py.h5o.get_info(found.id).addr
            if address in seen:
                raise _refused("holds the same object twice", where)
            seen.add(address)
            if len(seen) > MAX_OBJECTS:
                raise _refused(f"holds more than {MAX_OBJECTS:,} objects", None)
            if isinstance(found, h5py.Group):
                waiting.append((where, found))
            elif isinstance(found, h5py.Dataset):
                total += _array(where, found)
            else:
                raise _refused("holds something that is no array", where)
            if total > MAX_BYTES:
                raise _refused(f"holds arrays of more than {MAX_BYTES // 2**30} GiB", where)
    return total


def _array(where: str, array: h5py.Dataset) -> int:
    plan = array.id.get_create_plist()
    if plan.get_external_count() or plan.get_layout() == h5py.h5d.VIRTUAL:
        raise _refused("keeps an array in another file", where)
    if array.dtype.kind not in NUMBERS:
        raise _refused(f"holds an array of {array.dtype}, not of numbers", where)
    if plan.get_nfilters():
        raise _refused("holds a compressed array", where)
    if array.id.get_storage_size() < array.nbytes:
        raise _refused(f"promises an array of {array.shape} and does not hold it", where)
    return int(array.nbytes)


def _refused(message: str, value: str | None) -> SpecInvalid:
    return SpecInvalid([Problem(WEIGHTS, message, value, AGAIN)])
