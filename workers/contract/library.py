"""Uploaded files: what a spec calls them, where they lie in the artifact store, and what a host says of them.

A spec names a file of the library as `library:<version>@<sha256>`. The version says whose it is, which only the control
plane asks; the digest alone says which bytes, so a host needs no database to fetch them and keeps them for every job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from workers.contract.base import Strict
from workers.contract.catalog import Kind
from workers.contract.files.beginnings import is_text
from workers.contract.files.facts import Facts
from workers.contract.files.records import is_head
from workers.contract.obstacles import MOST_KERNELS, REASONS, Obstacle
from workers.contract.spec import Choice, JobSpec

_REFERENCE = re.compile(r"library:(\d{1,18})@([0-9a-f]{64})")
FILE = "file"
"""The option of a plugin that names its file: a reference, or by hand a path."""

MAX_BYTES = 2 * 2**30
"""Of one upload."""

Confinement = Literal["bubblewrap", "namespaces", "landlock", "limits"]
CONFINEMENTS: Mapping[Confinement, str] = {
    "bubblewrap": "in bubblewrap: no network, no files of the host, no secrets",
    "namespaces": "in namespaces of its own: no network, no files of the host, no secrets",
    "landlock": "by Landlock and seccomp: no network, no files of the host, no secrets",
    "limits": "with limits only: this host allows neither bubblewrap nor namespaces nor Landlock",
}


class Format(NamedTuple):
    """A kind of file: `title` for people, `suffix` of the file on a host, `magic` what it begins with, if not text."""

    kind: Kind
    title: str
    suffix: str
    magic: tuple[bytes, ...] = ()

    def begins(self, head: bytes) -> bool:
        """Whether a file of this kind may begin so."""
        if self.suffix == ".tfrecord":
            return is_head(head[:12])
        return head.startswith(self.magic) if self.magic else is_text(head)


FORMATS: Mapping[str, Format] = {
    "keras_file": Format("model", "Keras model (.keras)", ".keras", (b"PK\x03\x04",)),
    "python_module": Format("model", "Python module (.py)", ".py"),
    "csv": Format("dataset", "Table as text (.csv)", ".csv"),
    "parquet": Format("dataset", "Parquet table (.parquet)", ".parquet", (b"PAR1",)),
    "npz": Format("dataset", "NumPy arrays (.npz)", ".npz", (b"PK\x03\x04",)),
    "image_folder": Format("dataset", "Image folders (.zip)", ".zip", (b"PK\x03\x04",)),
    "tfrecord": Format("dataset", "TFRecords (.tfrecord)", ".tfrecord"),
    "text": Format("dataset", "Plain text (.txt)", ".txt"),
}
"""By the name of the plugin that opens it."""


class Reference(NamedTuple):
    """One version of one item of the library."""

    version: int
    sha256: str

    def __str__(self) -> str:
        return f"library:{self.version}@{self.sha256}"


class LayerFacts(Strict):
    """One row of a model's table of layers."""

    name: str = Field(max_length=200)
    kind: str = Field(max_length=200)
    shape: str = Field(max_length=200)
    parameters: int = Field(ge=0)


class ModelFacts(Strict):
    """What a built model is. `inputs` is one example's shape, None where any size goes; `bytes` of its weights."""

    inputs: tuple[int | None, ...] = Field(max_length=10)
    outputs: int = Field(ge=1)
    parameters: int = Field(ge=0)
    trainable: int = Field(ge=0)
    bytes: int = Field(ge=0)
    ending: str = Field("linear", max_length=100, description="Activation of the last layer.")
    obstacles: tuple[Obstacle, ...] = Field((), max_length=len(REASONS), description="Layers that a mesh cannot hold.")
    kernels: dict[str, tuple[int, ...]] = Field(
        default_factory=dict,
        max_length=MOST_KERNELS,
        description="Large weights by their names, of different sizes each; one of these must divide to split it.",
    )
    layers: tuple[LayerFacts, ...] = Field((), max_length=200)


class Preview(Strict):
    """The first rows of a table, the column names first, some pictures as `data:` addresses with their labels, or how a
    text begins.
    """

    rows: tuple[tuple[Annotated[str, Field(max_length=200)], ...], ...] = Field((), max_length=10)
    pictures: tuple[tuple[str, Annotated[str, Field(max_length=100_000, pattern=r"^data:image/\w+;base64,")]], ...] = (
        Field((), max_length=24)
    )
    text: str = Field("", max_length=2_000)


class Inspection(Strict):
    """An order to a host: look at a file of the store in a throw-away process. `upload` names the answer.

    `inputs` and `outputs` are the data that a Python module is asked to build a model for, with its `options`.
    """

    upload: str = Field(pattern=r"^[0-9a-f-]{36}$")
    format: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    inputs: tuple[int, ...] = Field((), max_length=10)
    outputs: int = Field(1, ge=1)
    options: dict[str, Any] = Field(default_factory=dict)


class Report(Strict):
    """A host's answer. `refused` is empty for a file that is taken; `output` is what the process printed, cut."""

    host: str = ""
    confinement: Confinement = "limits"
    seconds: float = 0.0
    refused: str = Field("", max_length=2000)
    output: str = Field("", max_length=20_000)
    model: ModelFacts | None = None
    dataset: Facts | None = None
    preview: Preview | None = None


def check_seconds(size: int) -> int:
    """How long a host may look at a file of so many bytes; a table of 1.9 GiB took 91 s, on a busy host over 180 s."""
    return 180 + size // (2 * 2**20)


def file_key(sha256: str) -> str:
    """Where a file of this content lies in the artifact store."""
    return f"library/files/{sha256}"


def report_key(upload: str) -> str:
    """Where a host leaves what it found."""
    return f"library/reports/{upload}.json"


def parse_reference(text: object) -> Reference | None:
    """What an option names, None for a path or anything else."""
    found = _REFERENCE.fullmatch(text) if isinstance(text, str) else None
    return Reference(int(found[1]), found[2]) if found else None


def references(spec: JobSpec) -> dict[Kind, Reference]:
    """The files of the library that a job needs."""
    found = {kind: parse_reference(_choice(spec, kind).options.get(FILE)) for kind in _KINDS}
    return {kind: reference for kind, reference in found.items() if reference is not None}


def localized(spec: JobSpec, folder: Path) -> JobSpec:
    """The spec as the engine of one host reads it: references become the paths of the files kept in `folder`."""
    changed: dict[str, Choice] = {}
    for kind, reference in references(spec).items():
        choice = _choice(spec, kind)
        path = local_path(folder, reference.sha256, choice.name)
        changed[kind] = choice.model_copy(update={"options": {**choice.options, FILE: str(path)}})
    return spec.model_copy(update=changed) if changed else spec


def local_path(folder: Path, sha256: str, format_name: str) -> Path:
    """Where a host keeps a file, under a name that its plugin opens."""
    known = FORMATS.get(format_name)
    return folder / f"{sha256}{known.suffix if known else ''}"


_KINDS: tuple[Kind, ...] = ("dataset", "model")


def _choice(spec: JobSpec, kind: Kind) -> Choice:
    choice: Choice = getattr(spec, kind)
    return choice
