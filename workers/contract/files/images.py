"""Looks at pictures in folders named as their classes, or at a zip file of such folders."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from workers.contract.files.archives import entries_of
from workers.contract.files.facts import MOST_CLASSES, Facts, Part, refuse
from workers.contract.files.parts import digest
from workers.contract.files.pictures import HEAD_BYTES, is_whole, size_of

ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".bmp")
UNREAD = (".webp", ".tif", ".tiff", ".heic", ".avif", ".jfif", ".jp2", ".svg")
"""Passed over, they would be missed: a class of nothing else would not be there."""
SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation"}
MOST_PIXELS = 64_000_000
MOST_BYTES = 256 * 2**20
"""Of one picture in its file."""


class Picture(NamedTuple):
    """`name` is its path within folder or archive, with / between; `bytes` its size there."""

    name: str
    label: str
    bytes: int


def pictures_in(path: Path) -> list[Picture]:
    """Every picture by name. What is no picture by its ending is passed over. Raises SpecInvalid."""
    if path.is_dir():
        found = _in_folder(path)
    elif path.is_file():
        found = {entry.filename: entry.file_size for entry in entries_of(path)}
    else:
        refuse("file", "is not there", str(path), "Give a folder of folders of pictures, or a zip file of them")
    other = next((name for name in found if _is_picture(name, UNREAD)), None)
    if other is not None:
        refuse("file", "holds a picture of a kind that is not read here", other, f"Save it as one of {_ENDINGS}")
    wanted = {name: size for name, size in found.items() if _is_picture(name)}
    paths = [PurePosixPath(name).parts for name in wanted]
    # A zip file of one folder often holds that folder itself.
    depth = 1 if paths and all(len(parts) > 2 for parts in paths) and len({parts[0] for parts in paths}) == 1 else 0
    if any(len(parts) <= depth + 1 for parts in paths):
        stray = next(name for name in wanted if len(PurePosixPath(name).parts) <= depth + 1)
        refuse("file", f"has a picture outside of any class's folder ({stray})", path.name, "Move it into one")
    pictures = [Picture(name, PurePosixPath(name).parts[depth], size) for name, size in sorted(wanted.items())]
    _check(pictures, path)
    return pictures


def _check(pictures: list[Picture], path: Path) -> None:
    classes = {picture.label for picture in pictures}
    if len(classes) < 2:
        message = "has pictures of one class only" if classes else "has no pictures in folders"
        refuse("file", message, path.name, f"Make a folder for each class, with pictures that end in {_ENDINGS}")
    if {label.lower() for label in classes} <= SPLITS and all(picture.name.count("/") > 1 for picture in pictures):
        message = f"has folders of classes within {' and '.join(sorted(classes))}"
        refuse("file", message, path.name, "Give the folders of classes of one of them alone")
    if len(classes) > MOST_CLASSES:
        refuse("file", f"has {len(classes):,} classes", path.name, f"Use at most {MOST_CLASSES:,}")
    large = next((picture.name for picture in pictures if picture.bytes > MOST_BYTES), None)
    if large is not None:
        refuse("file", f"has a picture of more than {MOST_BYTES:,} bytes ({large})", path.name, "Make it smaller")


_ENDINGS = ", ".join(ENDINGS)


def _is_picture(name: str, endings: tuple[str, ...] = ENDINGS) -> bool:
    path = PurePosixPath(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return not hidden and path.suffix.lower() in endings


def _in_folder(path: Path) -> dict[str, int]:
    """Links that lead out of the folder are refused."""
    home = path.resolve()
    found: dict[str, int] = {}
    for folder, _, names in os.walk(path):
        for name in names:
            file = Path(folder) / name
            if file.is_symlink() and not file.resolve().is_relative_to(home):
                refuse("file", f"holds a link out of the folder ({name})", path.name, "Put the file itself there")
            if file.is_file():
                found[file.relative_to(path).as_posix()] = file.stat().st_size
    return found


def inspect_images(path: Path) -> Facts:
    """Facts of a folder of folders or a zip file of them. Reads every picture. Raises SpecInvalid."""
    pictures = pictures_in(path)
    if path.is_dir():
        shape = _look(pictures, lambda name: (path / name).open("rb"))
        size, sha = sum(picture.bytes for picture in pictures), digest([path / each.name for each in pictures])
    else:
        try:
            with zipfile.ZipFile(path) as archive:
                shape = _look(pictures, archive.open)
        except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
            refuse("file", f"is torn ({error})", path.name, "Pack it again")
        size, sha = path.stat().st_size, digest([path])
    return Facts(
        kind="image_folder",
        samples=len(pictures),
        bytes=size,
        sha256=sha,
        parts=(Part(name=path.name, samples=len(pictures), bytes=size),),
        classes=tuple(sorted({picture.label for picture in pictures})),
        shape=shape,
    )


def _look(pictures: list[Picture], opened: Callable[[str], IO[Any]]) -> tuple[int, int, int]:
    """Size of the first picture. Raises SpecInvalid for one that is none, or larger than anybody's memory."""
    shape: tuple[int, int, int] | None = None
    for picture in pictures:
        with opened(picture.name) as stream:
            content = stream.read(MOST_BYTES + 1)
        size = size_of(content[:HEAD_BYTES])
        if size is None or min(size) < 1:
            refuse("file", "holds what is no PNG, JPEG, GIF or BMP picture", picture.name, "Remove it, or save it anew")
        if size[0] * size[1] > MOST_PIXELS:
            message = f"holds a picture of {size[1]:,} x {size[0]:,} pixels"
            refuse("file", message, picture.name, f"Make it smaller than {MOST_PIXELS:,} pixels")
        if not is_whole(content):
            refuse("file", "holds a picture that is torn", picture.name, "Remove it, or save it anew")
        shape = shape or size
    assert shape is not None
    return shape
