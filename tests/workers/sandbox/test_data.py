"""Files of data are looked at in the throw-away process too, hostile ones included."""

from __future__ import annotations

import base64
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.workers.file_corpus import example, number_records, png, write_records
from workers.contract.files.pictures import size_of
from workers.contract.library import Inspection, Preview, Report
from workers.sandbox.inspecting import inspect

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
UPLOAD = "00000000-0000-0000-0000-000000000000"
# One red pixel.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


def look(path: Path, format_name: str) -> Report:
    return inspect(path, Inspection(upload=UPLOAD, format=format_name, sha256="0" * 64))


def archive(path: Path, *names: str, content: bytes = PIXEL) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, content)
    return path


def test_it_describes_a_table_and_shows_its_head(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,kind\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(50)))
    report = look(path, "csv")
    assert report.refused == ""
    assert report.dataset is not None
    assert [(column.name, column.type) for column in report.dataset.columns] == [("x", "number"), ("kind", "category")]
    assert report.preview is not None
    assert report.preview.rows[:2] == (("x", "kind"), ("0", "a"))


def test_it_describes_pictures_and_shows_some(tmp_path: Path) -> None:
    report = look(archive(tmp_path / "p.zip", "cats/1.png", "cats/2.png", "dogs/1.png"), "image_folder")
    assert report.refused == ""
    assert report.dataset is not None
    assert report.dataset.classes == ("cats", "dogs")
    assert report.preview is not None
    assert {label for label, _ in report.preview.pictures} == {"cats", "dogs"}
    assert all(address.startswith("data:image/png;base64,") for _, address in report.preview.pictures)


@pytest.mark.parametrize("name", ["../evil.png", "/etc/evil.png"])
def test_it_refuses_an_archive_that_leaves_its_folder(tmp_path: Path, name: str) -> None:
    assert look(archive(tmp_path / "p.zip", "a/1.png", "b/1.png", name), "image_folder").refused


def test_it_refuses_arrays_of_objects(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, x=np.array([{"a": 1}], dtype=object), y=np.zeros(1))
    path = tmp_path / "o.npz"
    path.write_bytes(buffer.getvalue())
    assert "object" in look(path, "npz").refused


def test_it_tells_a_fault_without_the_name_that_the_file_has_on_the_host(tmp_path: Path) -> None:
    path = tmp_path / f"{'0' * 64}.txt"
    path.write_bytes(b"not UTF-8 \xff" * 20)
    assert look(path, "text").refused == "The file is not UTF-8 text at byte 10. Save the file as UTF-8."


@pytest.mark.parametrize("name", ["iris.csv", "small_net.py"])
def test_it_takes_the_examples_of_the_documentation(name: str) -> None:
    formats = {"iris.csv": "csv", "small_net.py": "python_module"}
    order = Inspection(upload=UPLOAD, format=formats[name], sha256="0" * 64, inputs=(4,), outputs=3)
    report = inspect(EXAMPLES / name, order)
    assert report.refused == ""
    assert (report.dataset is None) != (report.model is None)


def shown(path: Path, format_name: str) -> Preview:
    report = look(path, format_name)
    assert report.refused == ""
    assert report.preview is not None
    return report.preview


def test_it_shows_the_first_rows_of_parquet_and_how_a_text_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"x": [1.5, None] * 9, "kind": ["a", "b"] * 9}), path)
    assert shown(path, "parquet").rows[:3] == (("x", "kind"), ("1.5", "a"), ("", "b"))
    text = tmp_path / "a.txt"
    text.write_text("Call me Ishmael.\n" * 1_000)
    assert shown(text, "text").text.startswith("Call me Ishmael.\nCall")


def test_it_shows_arrays_and_examples_as_pictures_or_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(3 * 64, dtype=np.uint8).reshape(3, 8, 8), y=np.array([2, 0, 1]))
    pictures = shown(path, "npz").pictures
    assert [label for label, _ in pictures] == ["2", "0", "1"]
    assert size_of(base64.b64decode(pictures[0][1].partition(",")[2])) == (8, 8, 1)
    np.savez(path, x=np.ones((3, 2)), y=np.array([0.5, 1, 2]))
    assert shown(path, "npz").rows[:2] == (("0", "1", "target"), ("1", "1", "0.5"))
    records = tmp_path / "a.tfrecord"
    write_records(records, number_records(20))
    assert shown(records, "tfrecord").rows[0] == ("label", "x")
    write_records(records, [example({"image": PIXEL, "label": 7})])
    assert shown(records, "tfrecord").pictures[0][0] == "7"


def test_large_pictures_are_shown_as_far_as_there_is_room(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (40, 400, 300, 3), dtype=np.uint8)
    path = tmp_path / "a.npz"
    np.savez(path, x=noise, y=np.arange(40) % 2 == 0)
    pictures = shown(path, "npz").pictures
    assert len(pictures) == 18
    assert size_of(base64.b64decode(pictures[0][1].partition(",")[2])) == (58, 43, 3)
    heavy = png(noise[0, :120, :150])
    packed = archive(tmp_path / "p.zip", *(f"{kind}/{n}.png" for kind in "ab" for n in range(20)), content=heavy)
    assert 5 < len(shown(packed, "image_folder").pictures) < 18


def test_it_refuses_what_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"")
    assert look(path, "csv").refused
    other = tmp_path / "t.parquet"
    other.write_bytes(b"PAR1 and nothing more")
    assert look(other, "parquet").refused
