"""The data: what is held out, in which order it comes, and what a file that is not there gets."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.workers.training.conftest import seed_with
from workers.contract import catalog
from workers.contract.library import FILE
from workers.contract.spec import parse
from workers.training import data
from workers.training.arrays import Arrays, DataError
from workers.training.evaluation import shard_of


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
def test_it_evaluates_each_sample_in_exactly_oneshard_of(samples: int, replicas: int, batch: int) -> None:
    split = data.Split(np.arange(1, samples + 1).reshape(-1, 1), np.arange(1, samples + 1))
    shards = [shard_of(split, replica, replicas, batch) for replica in range(replicas)]
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


PurePickler: Any = pickle._Pickler  # type: ignore[attr-defined]


class Python2(PurePickler):  # type: ignore[misc]
    """Writes bytes as Python 2 wrote its texts."""

    dispatch: ClassVar[dict[Any, Any]] = dict(PurePickler.dispatch)

    def save_text(self, value: bytes) -> None:
        self.write(pickle.BINSTRING + struct.pack("<i", len(value)) + value)
        self.memoize(value)

    dispatch[bytes] = save_text


def pickled(**parts: Any) -> bytes:
    stream = io.BytesIO()
    Python2(stream, 2).dump({key.encode(): value for key, value in parts.items()})
    return stream.getvalue()


def test_it_loads_cifar_from_the_files_that_keras_keeps(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    planes = pictures.transpose(0, 3, 1, 2).reshape(12, -1)
    ten = tmp_path / "datasets" / "cifar-10-batches-py-target" / "cifar-10-batches-py"
    ten.mkdir(parents=True)
    for number in range(5):
        part = slice(2 * number, 2 * number + 2)
        (ten / f"data_batch_{number + 1}").write_bytes(pickled(data=planes[part], labels=[number, 9]))
    (ten / "test_batch").write_bytes(pickled(data=planes[10:], labels=[5, 6]))
    assert probe("cifar10", tmp_path) is None
    arrays = load("cifar10", tmp_path)
    assert np.array_equal(arrays.features, pictures[:10])
    assert arrays.targets.tolist() == [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]
    assert arrays.test_features is not None
    assert np.array_equal(arrays.test_features, pictures[10:])
    hundred = tmp_path / "datasets" / "cifar-100-python-target" / "cifar-100-python"
    hundred.mkdir(parents=True)
    for name in ("train", "test"):
        (hundred / name).write_bytes(pickled(data=planes, coarse_labels=[1] * 12, fine_labels=list(range(88, 100))))
    assert load("cifar100", tmp_path).targets.tolist() == list(range(88, 100))


def imdb(folder: Path, reviews: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lists = np.empty(len(reviews), object)
    lists[:] = reviews
    targets = np.arange(len(reviews)) % 2
    np.savez(folder / "imdb.npz", x_train=lists, y_train=targets, x_test=lists[:1], y_test=targets[:1])


def test_it_loads_imdb_from_the_file_that_keras_keeps(tmp_path: Path) -> None:
    imdb(tmp_path / "datasets", [[1, 5, 900], list(range(1, 21)), [7]])
    assert probe("imdb", tmp_path) is None
    arrays = load("imdb", tmp_path, vocabulary=100, length=8)
    # Padding, the start, words from 3 on, and 2 for what is too rare.
    assert arrays.features[0].tolist() == [0, 0, 0, 0, 1, 4, 8, 2]
    assert arrays.features[1].tolist() == list(range(16, 24))
    assert (arrays.features.dtype, arrays.targets.tolist()) == (np.int32, [0, 1, 0])


class Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("/nowhere"),)


def test_it_runs_nothing_that_a_dataset_holds(tmp_path: Path) -> None:
    imdb(tmp_path / "datasets", [Evil()])
    with pytest.raises(DataError, match="which is no data"):
        load("imdb", tmp_path)


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [("breast_cancer", (569, 30), [212, 357]), ("wine", (178, 13), [59, 71, 48]), ("diabetes", (442, 10), None)],
)
def test_it_standardizes_the_tables_of_scikit_learn(name: str, shape: Any, classes: list[int] | None) -> None:
    arrays = load(name, Path())
    assert arrays.features.shape == shape
    assert np.allclose(arrays.features.mean(0), 0, atol=1e-5)
    assert np.allclose(arrays.features.std(0), 1, atol=1e-5)
    if classes is None:
        assert arrays.targets.shape == (442, 1)
        assert arrays.targets.std() == pytest.approx(1, abs=1e-5)
    else:
        assert np.bincount(arrays.targets).tolist() == classes


def test_it_reads_the_text_that_comes_with_it() -> None:
    arrays = load("tiny_text", Path(), length=20)
    alphabet = catalog.find("dataset", "tiny_text").module.ALPHABET
    assert (
        "".join(alphabet[index] for index in arrays.features[:2].ravel())
        == "CHAPTER I. Down the Rabbit-Hole\n\nAlice w"
    )
    assert np.array_equal(arrays.features.ravel()[1:], arrays.targets.ravel()[:-1])
    assert arrays.test_features is not None
    assert len(arrays.test_features) == (len(arrays.features) + len(arrays.test_features)) // 10


@pytest.mark.parametrize("vocabulary", [5, 3000])
def test_it_makes_tokens_that_follow_one_another_by_rule(vocabulary: int) -> None:
    options = {"vocabulary": vocabulary, "successors": 3, "length": 10, "samples": 4000}
    arrays = load("synthetic_tokens", Path(), **options)
    assert np.array_equal(arrays.features, load("synthetic_tokens", Path(), **options).features)
    assert np.array_equal(arrays.features[:, 1:], arrays.targets[:, :-1])
    followers: dict[int, set[int]] = {}
    for before, after in zip(arrays.features.ravel(), arrays.targets.ravel(), strict=True):
        followers.setdefault(int(before), set()).add(int(after))
    assert max(map(len, followers.values())) == 3
    assert arrays.features.max() == vocabulary - 1


def test_it_makes_clicks_that_ids_and_numbers_explain() -> None:
    arrays = load("synthetic_clicks", Path(), categories=[1000, 5], numbers=2, samples=3000)
    ids = arrays.features[:, :2]
    assert np.array_equal(ids, ids.astype(np.int32))
    assert ids.min(0).tolist() == [0, 0]
    assert (ids.max(0) < [1000, 5]).all()
    assert 0.1 < arrays.targets.mean() < 0.9
    assert abs(np.corrcoef(arrays.features[:, 2], arrays.targets)[0, 1]) > 0.05


BUILT_IN = [name for name, entry in catalog.entries("dataset").items() if FILE not in entry.options.model_fields]


@pytest.mark.parametrize("name", BUILT_IN)
def test_it_hands_over_what_it_describes(name: str, tmp_path: Path) -> None:
    entry = catalog.find("dataset", name)
    info = entry.module.describe(entry.options())
    if name in {"mnist", "fashion_mnist", "cifar10", "cifar100", "imdb"}:
        return
    arrays = load(name, tmp_path)
    assert arrays.features.shape == (info.samples, *info.shape)
    tests = 0 if arrays.test_features is None else len(arrays.test_features)
    assert tests == info.test_samples
    assert arrays.targets.dtype == (np.float32 if info.task == "regression" else np.int32)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("mnist", "mnist.npz"),
        ("fashion_mnist", "fashion-mnist/t10k-labels-idx1-ubyte.gz"),
        ("cifar10", "cifar-10-batches-py-target/cifar-10-batches-py/data_batch_3"),
        ("cifar100", "cifar-100-python-target/cifar-100-python/train"),
        ("imdb", "imdb.npz"),
    ],
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
