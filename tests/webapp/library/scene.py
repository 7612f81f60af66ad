"""Puts files into a team's library through the same doors as the product, the host's answer given by hand."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

from tests.workers.contract.keras_files import dense, entry, layer, sequential, weights, write
from webapp.library import checks, uploads
from webapp.library.models import Item, Upload, Version
from webapp.teams.models import Team, User
from workers.contract.library import FORMATS, LayerFacts, ModelFacts, Report
from workers.sandbox.inspecting import inspect

FACTS = ModelFacts(
    inputs=(8, 8, 1),
    outputs=10,
    parameters=650,
    trainable=650,
    bytes=2600,
    ending="softmax",
    layers=(LayerFacts(name="logits", kind="Dense", shape="10", parameters=650),),
)
MODULE = b"import keras\n\ndef build_model(inputs, outputs, options):\n    ...\n"


FORMAT_OF = {one.suffix: name for name, one in FORMATS.items()}
TEXT = "Call me Ishmael. " * 600
TABLE = "width,height,kind\n" + "".join(f"{i % 7},{i * 0.5},{'ab'[i % 2]}\n" for i in range(300))


def table(team: Team, owner: User) -> Item:
    """A CSV in the library, looked at by the real program in the real throw-away process."""
    upload = send(team, owner, TABLE.encode(), filename="leaves.csv", step=4096)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "leaves.csv")
        path.write_text(TABLE)
        version = checks.conclude(upload, inspect(path, checks.inspection(upload)))
    assert version is not None
    return version.item


def text(team: Team, owner: User) -> Item:
    """A text in the library, looked at in the same way."""
    upload = send(team, owner, TEXT.encode(), filename="whale.txt", step=4096)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "whale.txt")
        path.write_text(TEXT)
        version = checks.conclude(upload, inspect(path, checks.inspection(upload)))
    assert version is not None
    return version.item


def keras_bytes() -> bytes:
    """A `.keras` file of a small model for the digits, as Keras would write it."""
    config = sequential(entry(8, 8, 1), layer("Flatten", {"name": "flatten"}), dense(10, 64))
    with tempfile.TemporaryDirectory() as folder:
        return write(Path(folder, "a.keras"), config, h5=weights(64, 10)).read_bytes()


def send(
    team: Team, owner: User, content: bytes, *, filename: str = "digits net.keras", step: int = 1000, **more: Any
) -> Upload:
    """Upload `content` in ranges of `step` bytes."""
    format_name = FORMAT_OF[Path(filename).suffix]
    upload = uploads.begin(
        team=team, owner=owner, format_name=format_name, filename=filename, size=len(content), **more
    )
    for offset in range(0, len(content), step):
        upload = uploads.append(upload, offset, io.BytesIO(content[offset : offset + step]))
    return upload


def answered(upload: Upload, **report: Any) -> Version | None:
    """What becomes of it once a host has said so."""
    return checks.conclude(upload, Report(host="h", confinement="namespaces", **({"model": FACTS} | report)))


def item(team: Team, owner: User, **more: Any) -> Item:
    """A ready item of the library."""
    version = answered(send(team, owner, keras_bytes(), **more))
    assert version is not None
    return version.item
