"""What all datasets in files let people choose, and the facts that stand in for a file where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from workers.contract.base import Options
from workers.contract.files.facts import Facts, refuse
from workers.training.arrays import DataError

IN_MEMORY_BYTES = 256 * 2**20
"""Of decoded examples: what `in_memory: auto` loads whole."""


class FileOptions(Options):
    """Where the data lies, and how much of it is held at once."""

    file: str | None = Field(
        None,
        min_length=1,
        max_length=4096,
        title="File",
        description="A file or a folder of files on the training host; for runs by hand.",
    )
    facts: Facts | None = Field(
        None,
        title="Facts",
        description="What was found in the file; filled in when it is looked at.",
        json_schema_extra={"advanced": True},
    )
    in_memory: Literal["auto", "always", "never"] = Field(
        "auto",
        title="In memory",
        description="Load all of it, or read it from disk while training; auto loads up to 256 MiB.",
        json_schema_extra={"advanced": True},
    )
    shuffle_buffer: int | None = Field(
        None,
        ge=1,
        le=10_000_000,
        title="Shuffle buffer",
        description="Rows among which data that is read from disk is shuffled; empty for 32 MiB of them. Where rows "
        "of a kind lie together it should be larger.",
        json_schema_extra={"advanced": True, "unit": "samples"},
    )


def facts_of(options: FileOptions) -> Facts:
    """What was found in the file. Raises SpecInvalid while nobody has looked."""
    if options.facts is None:
        if options.file is None:
            refuse("file", "is required", None, "Give the path of a file, in a run by hand")
        remedy = "Run the spec by hand on the host that has it: python -m workers.training"
        refuse("file", "has not been looked at", options.file, remedy)
    return options.facts


def streamed_files(options: FileOptions, memory_bytes: int) -> int | None:
    """How many files are read while training; None when all of it is loaded."""
    always, never = options.in_memory == "always", options.in_memory == "never"
    if always or (not never and memory_bytes <= IN_MEMORY_BYTES):
        return None
    return len(facts_of(options).parts)


def paths_of(options: FileOptions) -> list[Path]:
    """The files, in the order of the facts' parts. Raises DataError when they are not those that were looked at."""
    facts, file = facts_of(options), Path(options.file or "")
    found = [file / part.name if file.is_dir() else file for part in facts.parts]
    for path, part in zip(found, facts.parts, strict=True):
        size = path.stat().st_size if path.is_file() else None
        if size != part.bytes:
            what = "is not there" if size is None else f"has {size:,} bytes and had {part.bytes:,} when looked at"
            raise DataError(f"{path} {what}; put the same file there again, or submit the job with the new one.")
    return found
