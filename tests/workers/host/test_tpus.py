"""The TPU cores that the system shows, in trees that look like those of TPU hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.host.tpus import tpus


def tree(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def test_it_finds_none_on_an_ordinary_machine(tmp_path: Path) -> None:
    assert tpus(tree(tmp_path, "null", "accel/accel0", "vfio/vfio", "vfio/7"), {}) == ()
    assert tpus(tmp_path / "missing", {}) == ()


@pytest.mark.parametrize(("kind", "cores"), [("v3-8", 8), ("v2-8", 8), ("v4-8", 4), ("", 4)])
def test_it_counts_the_cores_of_each_chip(tmp_path: Path, kind: str, cores: int) -> None:
    found = tpus(tree(tmp_path, *(f"accel{number}" for number in range(4))), {"TPU_ACCELERATOR_TYPE": kind})
    assert [(device.kind, device.index) for device in found] == [("tpu", index) for index in range(cores)]
    assert {device.name for device in found} == {f"TPU {kind}".strip()}


def test_it_takes_vfio_groups_for_chips_only_where_something_says_so(tmp_path: Path) -> None:
    dev = tree(tmp_path, "vfio/vfio", "vfio/0", "vfio/1", "vfio/2", "vfio/3")
    assert len(tpus(dev, {"TPU_ACCELERATOR_TYPE": "v5litepod-4"})) == 4
    assert tpus(dev, {"TPU_ACCELERATOR_TYPE": ""}) == ()


@pytest.mark.parametrize(
    ("env", "cores"),
    [({"TPU_VISIBLE_CHIPS": "0,1"}, 2), ({"TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1"}, 4), ({"TPU_VISIBLE_DEVICES": "3"}, 1)],
)
def test_it_offers_no_more_than_the_environment_leaves(tmp_path: Path, env: dict[str, str], cores: int) -> None:
    assert len(tpus(tree(tmp_path, *(f"accel{number}" for number in range(8))), env)) == cores


def test_it_offers_all_cores_of_a_slice_that_the_host_drives(tmp_path: Path) -> None:
    dev = tree(tmp_path, *(f"accel{number}" for number in range(4)))
    assert len(tpus(dev, {"TPU_ACCELERATOR_TYPE": "v4-64"}, cores=32)) == 32
