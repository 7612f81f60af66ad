"""The data: what is held out, in which order it comes, and what a file that is not there gets."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workers.training.conftest import seed_with
from workers.contract import catalog
from workers.contract.spec import parse
from workers.training import data
from workers.training.arrays import Arrays, DataError
from workers.training.evaluation import _shard


def load(name: str, home: Path, **options: Any) -> Arrays:
    entry = catalog.find("dataset", name)
    arrays: Arrays = entry.module.load(entry.parse(options), home)
    return arrays


def probe(name: str, home: Path) -> str | None:
    entry = catalog.find("dataset", name)
    answer: str | None = entry.module.probe(entry.parse({}), home)
    return answer


def test_it_loads_the_real_digits() -> None:
    arrays = load("digits", Path())
    assert arrays.features.shape == (1797, 8, 8, 1)
    assert (arrays.features.min(), arrays.features.max()) == (0, 1)
    assert np.bincount(arrays.targets).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_it_holds_out_the_same_examples_for_every_seed() -> None:
    one, two = (data.load(parse(seed_with(training={"seed": seed}))) for seed in (1, 2))
    assert len(one.training) == 1438
    assert len(one.validation) == 359
    assert np.array_equal(one.validation.features, two.validation.features)


def test_it_orders_samples_by_seed_and_epoch_alone() -> None:
    order = data.epoch_order(100, seed=1, epoch=0, shuffle=True)
    assert sorted(order) == list(range(100))
    assert np.array_equal(order, data.epoch_order(100, seed=1, epoch=0, shuffle=True))
    assert not np.array_equal(order, data.epoch_order(100, seed=1, epoch=1, shuffle=True))
    assert not np.array_equal(order, data.epoch_order(100, seed=2, epoch=0, shuffle=True))
    assert data.epoch_order(100, seed=1, epoch=3, shuffle=False).tolist() == list(range(100))


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_it_shares_the_same_global_batches_among_any_number_of_replicas(replicas: int) -> None:
    order = data.epoch_order(100, seed=1, epoch=0, shuffle=True)
    shares = [
        data.replica_batches(order, global_batch=24, replicas=replicas, replica=replica) for replica in range(replicas)
    ]
    assert np.array_equal(np.concatenate(shares, axis=2), order[:96].reshape(4, 1, 24))


def test_it_takes_several_global_batches_into_one_step() -> None:
    order = data.epoch_order(100, seed=1, epoch=0, shuffle=True)
    shares = [
        data.replica_batches(order, global_batch=12, micro_batches=3, replicas=2, replica=replica)
        for replica in range(2)
    ]
    assert np.array_equal(np.concatenate(shares, axis=2), order[:72].reshape(2, 3, 12))


@pytest.mark.parametrize(("samples", "replicas", "batch"), [(1, 4, 8), (7, 2, 2), (1000, 3, 32), (256, 2, 128)])
def test_it_evaluates_each_sample_in_exactly_one_shard(samples: int, replicas: int, batch: int) -> None:
    split = data.Split(np.arange(1, samples + 1).reshape(-1, 1), np.arange(1, samples + 1))
    shards = [_shard(split, replica, replicas, batch) for replica in range(replicas)]
    seen = np.concatenate([targets[mask == 1] for _, targets, mask in shards])
    assert sorted(seen) == list(range(1, samples + 1))
    assert len({features.shape for features, _, _ in shards}) == 1


def test_it_makes_the_same_synthetic_images_everywhere() -> None:
    options = {"shape": [4, 4, 1], "classes": 3, "samples": 50}
    one, two = (load("synthetic_images", Path(), **options) for _ in range(2))
    assert one.features.shape == (50, 4, 4, 1)
    assert np.array_equal(one.features, two.features)
    assert one.test_features is not None
    assert len(one.test_features) == 5
    assert set(one.targets) == {0, 1, 2}


def test_it_loads_mnist_from_the_file_that_keras_keeps(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (12, 28, 28), dtype=np.uint8)
    (tmp_path / "datasets").mkdir()
    parts = {"x_train": pictures[:8], "x_test": pictures[8:], "y_train": np.arange(8), "y_test": np.arange(4)}
    np.savez(tmp_path / "datasets" / "mnist.npz", **parts)
    assert probe("mnist", tmp_path) is None
    arrays = load("mnist", tmp_path)
    assert np.array_equal(arrays.features[..., 0], pictures[:8])
    assert arrays.test_targets is not None
    assert arrays.test_targets.tolist() == [0, 1, 2, 3]
    assert arrays.targets.dtype == np.int32


def idx(values: Any) -> bytes:
    return gzip.compress(struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes())


def fashion(folder: Path) -> Any:
    pictures = np.random.default_rng(0).integers(0, 256, (8, 28, 28), dtype=np.uint8)
    folder.mkdir(parents=True)
    for part, count in (("train", 8), ("t10k", 4)):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(idx(pictures[:count]))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(idx(np.arange(count, dtype=np.uint8)))
    return pictures


def test_it_loads_fashion_mnist_from_the_files_that_keras_keeps(tmp_path: Path) -> None:
    pictures = fashion(tmp_path / "datasets" / "fashion-mnist")
    arrays = load("fashion_mnist", tmp_path)
    assert np.array_equal(arrays.features[..., 0], pictures)
    assert arrays.targets.tolist() == list(range(8))


@pytest.mark.parametrize(
    ("name", "file"), [("mnist", "mnist.npz"), ("fashion_mnist", "fashion-mnist/t10k-labels-idx1-ubyte.gz")]
)
def test_it_says_which_file_to_put_where(name: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_OFFLINE", "1")
    folder = tmp_path / "datasets"
    problem = probe(name, tmp_path)
    assert problem is not None
    assert Path(file).name in problem
    assert str((folder / file).parent) in problem
    with pytest.raises(DataError, match="works offline"):
        load(name, tmp_path)


def test_it_refuses_a_broken_file_by_name(tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "mnist.npz").write_bytes(b"half a download")
    with pytest.raises(DataError, match=r"mnist\.npz cannot be read"):
        load("mnist", tmp_path)
    folder = tmp_path / "datasets" / "fashion-mnist"
    fashion(folder)
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(b"\x1f\x8bhalf")
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte\.gz cannot be read"):
        load("fashion_mnist", tmp_path)


def test_it_refuses_data_of_another_size_than_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    fashion(tmp_path / "datasets" / "fashion-mnist")
    with pytest.raises(DataError, match="instead of"):
        data.load(parse(seed_with(dataset={"name": "fashion_mnist"})))
