"""Looking at files: what is found in real ones, and the sentence that each broken or hostile one is refused with."""

from __future__ import annotations

import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.workers.contract.looking import fault
from tests.workers.file_corpus import (
    example,
    number_records,
    png,
    write_pictures,
    write_records,
)
from workers.contract.files.facts import MOST_CHARACTERS, Facts
from workers.contract.files.images import inspect_images
from workers.contract.files.npz import inspect_npz
from workers.contract.files.pictures import size_of
from workers.contract.files.records import inspect_records
from workers.contract.files.texts import MOST_TEXT_BYTES, inspect_text


def test_it_finds_arrays_by_their_headers(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros((20, 4, 4), np.uint8), y=np.arange(20) % 3, z=np.ones((20, 2)))
    facts = inspect_npz(path)
    assert facts.samples == 20
    assert {(feature.name, feature.type, feature.shape, feature.high) for feature in facts.features} == {
        ("x", "byte", (20, 4, 4), None),
        ("y", "integer", (20,), 2),
        ("z", "number", (20, 2), None),
    }


class Bomb:
    """What unpickling must never see."""

    def __reduce__(self) -> tuple[Callable[..., None], tuple[str]]:
        return (pytest.fail, ("an object was unpickled",))


def test_it_refuses_objects_in_npz_without_unpickling_them(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([Bomb()], dtype=object), y=np.zeros(1))
    assert "Python objects in x" in fault(inspect_npz, path)


def test_it_refuses_npz_that_is_none_torn_or_lies(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"\x93NUMPY")
    assert "is not a zip file" in fault(inspect_npz, path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"not an array at all")
    assert "x.npy is no array" in fault(inspect_npz, path)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}".ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"1234")
    assert "has not the size that it says" in fault(inspect_npz, path)
    np.savez(path, x=np.array(["words"]))
    assert "<U5 in x" in fault(inspect_npz, path)


def test_it_finds_pictures_in_folders_and_in_a_zip_file_of_them(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "pictures", 3)
    (folder / "red" / ".DS_Store").write_bytes(b"junk")
    facts = inspect_images(folder)
    assert (facts.samples, facts.classes, facts.shape) == (6, ("blue", "red"), (8, 8, 3))
    packed = tmp_path / "pictures.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in folder.rglob("*.png"):
            archive.write(file, file.relative_to(tmp_path))
        archive.writestr("__MACOSX/pictures/red/._0000.png", b"junk")
    assert inspect_images(packed).classes == ("blue", "red")


def hostile(name: str, content: bytes = b"", *, link: bool = False) -> Callable[[zipfile.ZipFile], None]:
    def write(archive: zipfile.ZipFile) -> None:
        entry = zipfile.ZipInfo(name)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16 if link else 0o644 << 16
        archive.writestr(entry, content)

    return write


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (hostile("../red/a.png"), "leads out of it"),
        (hostile("/etc/a.png"), "leads out of it"),
        (hostile("C:/red/a.png"), "leads out of it"),
        (hostile("red/../../a.png"), "leads out of it"),
        (hostile("red/a.png", b"/etc/passwd", link=True), "holds a link"),
        (hostile("green/a.png", b"<svg onload=alert(1)>"), "no PNG, JPEG, GIF or BMP picture"),
        (hostile("green/a.png", b"\x89PNG\r\n\x1a\n"), "no PNG, JPEG, GIF or BMP picture"),
        (hostile("a.png", png(np.zeros((2, 2, 3), np.uint8))), "outside of any class"),
        (hostile("green/a.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 8 + b"\0\1\0\0" * 2 + b"\0" * 9), "65,536 x 65,536"),
    ],
)
def test_it_refuses_a_hostile_zip_file(write: Callable[[zipfile.ZipFile], None], said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("blue", "red"):
            archive.writestr(f"{name}/0.png", png(np.zeros((2, 2, 3), np.uint8)))
        write(archive)
    assert said in fault(inspect_images, path)


def test_it_refuses_an_encrypted_zip_file_and_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("red/0.png", b"\0" * 2**22)
    content = bytearray(path.read_bytes())
    central = content.index(b"PK\x01\x02")
    bomb = content.copy()
    struct.pack_into("<I", bomb, central + 24, 2**32 - 2)
    path.write_bytes(bomb)
    assert "would unpack to 4,294,967,294 bytes" in fault(inspect_images, path)
    content[central + 8] |= 1
    path.write_bytes(content)
    assert "is encrypted" in fault(inspect_images, path)


def test_it_refuses_pictures_of_one_class(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    (folder / "red").mkdir(parents=True)
    (folder / "red" / "0.png").write_bytes(png(np.zeros((2, 2, 3), np.uint8)))
    assert "pictures of one class only" in fault(inspect_images, folder)


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (png(np.zeros((3, 5, 3), np.uint8)), (3, 5, 3)),
        (b"GIF89a" + struct.pack("<HH", 5, 3), (3, 5, 3)),
        (b"BM" + b"\0" * 16 + struct.pack("<ii", 5, -3), (3, 5, 3)),
        (b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x0b\x08\0\3\0\5\1" + b"\0" * 8, (3, 5, 1)),
        (b"\xff\xd8\xff\xe0", None),
        (b"RIFF", None),
    ],
)
def test_it_reads_the_size_of_a_picture(head: bytes, size: tuple[int, int, int] | None) -> None:
    assert size_of(head) == size


def test_it_finds_the_features_of_examples(tmp_path: Path) -> None:
    picture = png(np.zeros((3, 5, 3), np.uint8))
    records = [example({"x": [1.0, 2.0], "n": n - 2, "image": picture, "raw": b"ab", "r": [0.5] * n}) for n in (1, 9)]
    facts = inspect_records(write_records(tmp_path / "a.tfrecord", records))
    assert facts.samples == 2
    assert facts.shape == (3, 5, 3)
    assert {(feature.name, feature.type, feature.shape, feature.low, feature.high) for feature in facts.features} == {
        ("x", "number", (2,), None, None),
        ("n", "integer", (), -1, 7),
        ("image", "image", (), None, None),
        ("raw", "bytes", (), None, None),
        ("r", "ragged", (), None, None),
    }


def test_it_refuses_records_that_are_none_torn_or_packed(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"a,b\n1,2\n3,4\n5,6\n")
    assert "is not a TFRecord file" in fault(inspect_records, path)
    path.write_bytes(b"\x1f\x8b" + b"\0" * 30)
    assert "is compressed" in fault(inspect_records, path)
    write_records(path, number_records(3))
    path.write_bytes(path.read_bytes()[:-7])
    assert "is torn at byte" in fault(inspect_records, path)
    write_records(path, [b"\xff\xff\xff\xff not an example"])
    assert "no tf.train.Example (number 0)" in fault(inspect_records, path)


def look_at_text(path: Path) -> Facts:
    return inspect_text(path, 8)


def test_it_finds_the_characters_of_a_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Grüße, ".encode() * 200_000)
    facts = look_at_text(path)
    assert (facts.samples, facts.alphabet) == (1_400_000, " ,Gerßü")
    path.write_text("".join(map(chr, range(0x4E00, 0x4E00 + MOST_CHARACTERS + 1))))
    assert look_at_text(path).alphabet == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"too few", "has 7 characters, too few for one window of 8"),
        (b"a" * 99, "one character again and again"),
        (b"some text \xff and more", "is not UTF-8 text at byte 10"),
        (b"x" * (2**20 - 1) + "ü".encode()[:1] + b"yz", "is not UTF-8 text at byte 1,048,575"),
        ("cut off in a letter: ü".encode()[:-1], "is not UTF-8 text at byte 21"),
        ("UTF-16 of Windows".encode("utf-16"), "NUL at byte 3"),
        (b"\xed\xa0\x80 is half of a pair", "is not UTF-8 text at byte 0"),
    ],
)
def test_it_refuses_what_is_no_text(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    assert said in fault(look_at_text, path)


def test_it_refuses_a_text_that_is_too_long_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with path.open("wb") as stream:
        stream.truncate(MOST_TEXT_BYTES + 1)
    assert "has 268,435,457 bytes" in fault(look_at_text, path)
    assert "is a folder" in fault(look_at_text, tmp_path)
