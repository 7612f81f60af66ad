"""Files that are not quite what a machine would like: taken where that can be, else told by name what to mend."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format as npy

from tests.workers.file_corpus import png
from workers.contract.files.images import inspect_images
from workers.contract.files.npz import inspect_npz
from workers.contract.files.pictures import is_whole
from workers.contract.files.reading import csv_header
from workers.contract.files.tables import inspect_csv
from workers.contract.problems import SpecInvalid

PICTURE = png(np.zeros((6, 5, 3), np.uint8))
JPEG = b"\xff\xd8\xff\xe0\0\x04\0\0\xff\xc0\0\x0b\x08\0\x06\0\x05\x01\x01\x11\0\xff\xda\0\x02some data\xff\xd9"


def columns(tmp_path: Path, content: bytes) -> dict[str, str]:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    return {column.name: column.type for column in inspect_csv(path).columns}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_it_finds_what_separates_columns(tmp_path: Path, separator: str) -> None:
    content = "a,b,c\n1,2,x\n3,4,y\n".replace(",", separator).encode("utf-8-sig")
    assert columns(tmp_path, content) == {"a": "number", "b": "number", "c": "category"}
    assert csv_header(tmp_path / "a.csv")[1] == separator


def test_it_reads_the_decimals_of_a_table_with_semicolons(tmp_path: Path) -> None:
    assert columns(tmp_path, b"a;b\n1,5;x,y\n-2,25e3;z\n") == {"a": "number", "b": "category"}
    assert inspect_csv(tmp_path / "a.csv").columns[0].mean == (1.5 - 2250.0) / 2


def test_it_names_columns_that_have_no_name(tmp_path: Path) -> None:
    assert list(columns(tmp_path, b",a,\n0,5,\n1,6,\n")) == ["column 1", "a", "column 3"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"# by hand\na,b\n1,2\n", "fewer than two columns in its first line (got # by hand)"),
        (b"a,b\r1,2\r", "ends its lines as old Macs did"),
        (b'a,"b\nc"\n1,2\n', "a quotation mark in its first line that is not closed"),
        (b"a,b", "holds no row below its first line"),
        (b"a," + b"n" * 201 + b"\n1,2\n", "Give it 1 to 200 letters"),
        (b"a,b\n" + b"1,2\n" * 9 + b'1,"' + b"z" * 10**7, "a quotation mark that is never closed"),
    ],
)
def test_it_tells_what_is_wrong_with_a_table(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(SpecInvalid) as refused:
        columns(tmp_path, content)
    assert words in str(refused.value)


def test_it_reads_labels_part_by_part(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    labels = np.arange(-7, 400_000, dtype=np.int64)
    np.savez_compressed(path, x=np.zeros((len(labels), 1), np.uint8), y=labels)
    feature = inspect_npz(path).feature("y", "target")
    assert (feature.low, feature.high) == (-7, 399_999)


@pytest.mark.parametrize("arrays", [{"x": (5, 3)}, {"x": (5, 3), "y": (4,)}, {"x": (5, 3), "note": ()}])
def test_it_refuses_arrays_that_do_not_go_together(tmp_path: Path, arrays: dict[str, tuple[int, ...]]) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, shape in arrays.items():
            content = io.BytesIO()
            npy.write_array(content, np.zeros(shape))
            archive.writestr(f"{name}.npy", content.getvalue())
    with pytest.raises(SpecInvalid, match=r"no two arrays with as many rows \(got x \(5, 3\)"):
        inspect_npz(path)


def pictures(tmp_path: Path, **named: bytes) -> Path:
    path = tmp_path / "p.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in named.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return path


def test_it_takes_pictures_of_any_size_and_leaves_what_macs_add(tmp_path: Path) -> None:
    path = pictures(tmp_path, top__a__1_png=PICTURE, top__b__1_jpg=JPEG, top__a___DS_Store=b"x")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/top/a/._1.png", b"x")
    facts = inspect_images(path)
    assert (facts.samples, facts.classes, facts.shape) == (2, ("a", "b"), (6, 5, 3))


@pytest.mark.parametrize("torn", [PICTURE[:-20], PICTURE[:50] + b"x" + PICTURE[51:], JPEG[:-2]])
def test_it_refuses_a_torn_picture(tmp_path: Path, torn: bytes) -> None:
    assert is_whole(PICTURE)
    assert is_whole(JPEG)
    with pytest.raises(SpecInvalid, match=r"a picture that is torn \(got b/1.png\)"):
        inspect_images(pictures(tmp_path, a__1_png=PICTURE, b__1_png=torn))


def test_it_does_not_pass_over_a_class_of_pictures_that_it_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(SpecInvalid, match=r"a kind that is not read here \(got c/1.webp\)"):
        inspect_images(pictures(tmp_path, a__1_png=PICTURE, b__1_png=PICTURE, c__1_webp=b"RIFF"))


def test_it_does_not_take_train_and_test_for_classes(tmp_path: Path) -> None:
    path = pictures(tmp_path, train__a__1_png=PICTURE, train__b__1_png=PICTURE, Test__a__1_png=PICTURE)
    with pytest.raises(SpecInvalid, match="folders of classes within Test and train"):
        inspect_images(path)


def test_it_refuses_more_pixels_than_fit_memory(tmp_path: Path) -> None:
    vast = PICTURE[:16] + struct.pack(">II", 60_000, 60_000) + PICTURE[24:]
    with pytest.raises(SpecInvalid, match="60,000 x 60,000 pixels"):
        inspect_images(pictures(tmp_path, a__1_png=vast, b__1_png=PICTURE))
