"""The HDF5 file of a model's weights is looked through before Keras opens it."""

from __future__ import annotations

import io
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.workers.contract.keras_files import weights as plain
from tests.workers.contract.keras_files import write
from workers.contract.problems import SpecInvalid
from workers.sandbox import weights


def h5(tmp_path: Path, name: str) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        group = file.create_group("layers/dense/vars")
        match name:
            case "external link":
                group["0"] = h5py.ExternalLink("/etc/passwd", "/")
            case "soft link":
                group["0"] = h5py.SoftLink("/layers")
            case "cycle":
                group["0"] = file["layers"]
            case "external storage":
                group.create_dataset("0", (4, 3), "float32", external=[(str(tmp_path / "raw"), 0, 48)])
            case "virtual":
                layout = h5py.VirtualLayout((4, 3), "float32")
                layout[:] = h5py.VirtualSource("/tmp/other.h5", "x", (4, 3))
                group.create_virtual_dataset("0", layout)
            case "shape bomb":
                group.create_dataset("0", (2**40,), "float32", chunks=(1024,))
            case "compressed":
                group.create_dataset("0", data=np.zeros((4096, 64), "float32"), compression="gzip")
            case "words":
                group["0"] = np.array([b"a", b"b"], "S1")
            case "objects":
                group.create_dataset("0", (2,), h5py.string_dtype())
            case "type":
                group["0"] = np.dtype("float32")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("external link", "links to something outside"),
        ("soft link", "links to something outside"),
        ("cycle", "the same object twice"),
        ("external storage", "keeps an array in another file"),
        ("virtual", "keeps an array in another file"),
        ("shape bomb", "promises an array"),
        ("compressed", "compressed"),
        ("words", "not of numbers"),
        ("objects", "not of numbers"),
        ("type", "no array"),
    ],
)
def test_it_refuses(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(SpecInvalid, match=words):
        weights.check(write(tmp_path / "a.keras", h5=h5(tmp_path, name)))


def test_it_takes_plain_arrays(tmp_path: Path) -> None:
    assert weights.check(write(tmp_path / "a.keras")) == 4 * 15


def test_it_refuses_what_is_torn(tmp_path: Path) -> None:
    with pytest.raises(SpecInvalid, match="cannot be read as HDF5"):
        weights.check(write(tmp_path / "a.keras", h5=plain()[:600]))
