"""Looks at NPZ: which arrays there are, by their headers; only what may be labels is read."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

from workers.contract.files.archives import entries_of
from workers.contract.files.facts import Facts, Feature, Part, refuse
from workers.contract.files.parts import CHUNK, digest, files_of


def inspect_npz(path: Path) -> Facts:
    """Facts of an NPZ file; `samples` is the length of its longest array. Raises SpecInvalid."""
    if path.is_dir():
        refuse("file", "is a folder", str(path), "Give one NPZ file")
    [file] = files_of(path, (".npz",))
    entries = entries_of(file)
    if not entries:
        refuse("file", "holds no array", file.name, "Write it with numpy.savez")
    try:
        with zipfile.ZipFile(file) as archive:
            features = tuple(_feature(archive, entry, file) for entry in entries)
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
        refuse("file", f"is torn ({error})", file.name, "Write it again with numpy.savez")
    longest = max((feature.shape[0] for feature in features if feature.shape), default=0)
    if not longest:
        refuse("file", "holds no array with rows", file.name, "Write it with numpy.savez")
    lengths = [feature.shape[0] for feature in features if feature.shape]
    if not any(lengths.count(length) > 1 for length in lengths):
        held = ", ".join(f"{feature.name} {feature.shape}" for feature in features)
        refuse("file", "holds no two arrays with as many rows", held, "Give an array of features and one of targets")
    size = file.stat().st_size
    part = Part(name=file.name, samples=longest, bytes=size)
    return Facts(kind="npz", samples=longest, bytes=size, sha256=digest([file]), parts=(part,), features=features)


def _feature(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, file: Path) -> Feature:
    import numpy as np

    name = entry.filename.removesuffix(".npy")
    with archive.open(entry) as stream:
        shape, dtype, header = _header(stream, entry, file)
        if dtype.hasobject:
            refuse("file", f"holds Python objects in {name}, which could run any code", file.name, "Save numbers only")
        if dtype.kind not in "biuf":
            refuse("file", f"holds {dtype} in {name}", file.name, "Save numbers only")
        if entry.file_size != header + math.prod(shape) * dtype.itemsize:
            refuse("file", f"is torn: {name} has not the size that it says", file.name, "Write it again")
        if dtype.kind == "f" or len(shape) != 1:
            kind: Any = "byte" if dtype == np.uint8 else "integer" if dtype.kind in "biu" else "number"
            return Feature(name=name, type=kind, shape=shape)
        low, high = _bounds(stream, dtype)
    return Feature(name=name, type="integer", shape=shape, low=low, high=high)


def _bounds(stream: IO[bytes], dtype: Any) -> tuple[int | None, int | None]:
    """The least and the greatest of whole numbers, part by part: they may unpack to more than memory holds."""
    import numpy as np

    low: int | None = None
    high: int | None = None
    while part := stream.read(CHUNK):
        values = np.frombuffer(part, dtype)
        low = int(values.min()) if low is None else min(low, int(values.min()))
        high = int(values.max()) if high is None else max(high, int(values.max()))
    return low, high


def _header(stream: IO[bytes], entry: zipfile.ZipInfo, file: Path) -> tuple[tuple[int, ...], Any, int]:
    """Shape, dtype, and how many bytes the header takes."""
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(stream)
    except (ValueError, EOFError) as error:
        said = (str(error).splitlines() or ["no header"])[0][:100]
        refuse("file", f"is no NPZ file: {entry.filename} is no array ({said})", file.name, "Use numpy.savez")
    return tuple(int(size) for size in shape), dtype, stream.tell()
