"""Training on TFRecords and folders of pictures: what is in them, as it is mapped, decoded and read from disk."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.workers.file_corpus import example, number_records, write_pictures, write_records
from tests.workers.training.conftest import run_script
from tests.workers.training.test_files import Start, document, looked_at


def test_records_tell_a_single_number_unless_told_otherwise(tmp_path: Path) -> None:
    records = [example({"x": [0.5, number % 3], "kind": number % 3, "zoom": [0.5]}) for number in range(300)]
    info = looked_at("tfrecord", write_records(tmp_path / "some.tfrecord", records)).dataset_info
    assert (info.task, info.classes, info.shape) == ("classification", 3, (3,))
    info = looked_at("tfrecord", tmp_path / "some.tfrecord", target="zoom").dataset_info
    assert (info.task, info.shape) == ("regression", (3,))


def test_records_and_pictures_train_from_disk(tmp_path: Path, by_hand: Start) -> None:
    folder = write_pictures(tmp_path / "pictures", 60)
    packed = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", folder))
    files = tmp_path / "records"
    files.mkdir()
    for number in range(2):
        write_records(files / f"{number}.tfrecord", number_records(400, seed=number))
    runs = [
        by_hand(document("tfrecord", files, in_memory="never", training={"deterministic": False})),
        by_hand(document("image_folder", packed, in_memory="never", training={"global_batch": 12})),
    ]
    for run in runs:
        assert run.finish() == 0, run.stderr
        assert max(run.series("val_accuracy").values()) > 0.9


# Whole by its marks, so that it passes the look at the file; only a decoder sees that it holds nothing.
NO_PICTURE = b"\xff\xd8\xff\xe0\0\x04\0\0\xff\xc0\0\x0b\x08\0\x08\0\x08\x01\x01\x11\0\xff\xda\0\x02nothing\xff\xd9"


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a TensorFlow process makes of small files of examples and pictures, whole and torn."""
    home = tmp_path_factory.mktemp("decoded")
    folder = write_pictures(home / "pictures", 3)
    with zipfile.ZipFile(home / "pictures.zip", "w") as archive:
        for file in sorted(folder.rglob("*.png")):
            archive.write(file, file.relative_to(folder))
    torn = shutil.copytree(folder, home / "torn")
    whole = (torn / "red" / "0000.png").read_bytes()
    (torn / "red" / "0000.png").write_bytes(NO_PICTURE)
    shown = {"raw": bytes(range(12)), "image": whole}
    records = [example({**shown, "x": [n, n], "label": n % 2, "y": [n, 2 * n]}) for n in range(20)]
    write_records(home / "a.tfrecord", records)
    flipped = bytearray((home / "a.tfrecord").read_bytes())
    flipped[flipped.index(bytes(range(12)), len(flipped) // 2)] ^= 255
    (home / "torn.tfrecord").write_bytes(flipped)
    answer: dict[str, Any] = run_script("decoding.py", str(home))
    return answer


def test_it_decodes_pictures_alike_from_folder_and_zip_file(decoded: dict[str, Any]) -> None:
    assert decoded["folder"] == decoded["zip"]
    assert decoded["folder"]["shape"] == [6, 8, 8, 3]
    assert decoded["folder"]["targets"] == [0, 0, 0, 1, 1, 1]
    assert decoded["grey and small"]["shape"] == [6, 4, 6, 1]


def test_it_names_a_picture_that_is_torn(decoded: dict[str, Any]) -> None:
    assert "red/0000.png cannot be read" in decoded["torn pictures"]["error"]


def test_it_maps_features_as_it_is_told(decoded: dict[str, Any]) -> None:
    assert decoded["numbers"]["shape"] == [20, 4]
    assert decoded["numbers"]["first"] == [0, 0, 0, 0]
    assert decoded["raw"]["shape"] == [20, 2, 2, 3]
    assert decoded["raw"]["first"] == list(range(12))
    assert decoded["image"]["shape"] == [20, 8, 8, 3]
    assert decoded["regression"]["targets"][1] == [1, 2]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("unmapped bytes", "raw is bytes"),
        ("two kinds", "a picture or bytes beside others"),
        ("wrong shape", "x has 2 values"),
        ("unknown", "There are: image, label, raw, x, y"),
        ("torn", "torn.tfrecord cannot be read"),
    ],
)
def test_it_refuses_a_map_that_does_not_fit(case: str, said: str, decoded: dict[str, Any]) -> None:
    assert said in decoded[case]["error"]
