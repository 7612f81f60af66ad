"""Training on files: each kind, loaded or read from disk, and a file that memory could not hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pyarrow import csv, parquet

from tests.workers.file_corpus import table_rows, write_table
from tests.workers.training.conftest import PAIR, ByHand, run_script, seed_with
from tests.workers.training.warm import House, series
from workers.contract.problems import SpecInvalid
from workers.contract.spec import JobSpec, parse
from workers.training import data, files_here

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
Start = Callable[..., ByHand]
LEARNS: dict[str, Any] = {"optimizer": {"name": "adam", "learning_rate": 0.01}, "global_batch": 50, "epochs": 4}
SMALL = {"name": "mlp", "options": {"units": [16], "dropout": [0]}}
WIDE = {"name": "wide_and_deep", "options": {"width": 4, "units": [16]}}
LM = {"name": "transformer_lm", "options": {"layers": 1, "width": 16, "heads": 2}}
ONE = {"name": "one_device"}
HONEST = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
}
"""Arrow's own pool reserves a gigabyte at the start, behind which no limit could be seen; freed memory goes back."""


def document(
    name: str, file: Path, *, training: dict[str, Any] | None = None, model: Any = SMALL, **options: Any
) -> dict[str, Any]:
    """A small job on a file."""
    dataset = {"name": name, "options": {"file": str(file), **options}}
    return seed_with(dataset=dataset, model=model, strategy=ONE, training={**LEARNS, **(training or {})})


def looked_at(name: str, file: Path, **more: Any) -> JobSpec:
    return parse(files_here.resolve(document(name, file, **more)))


def refused(name: str, file: Path, **more: Any) -> dict[str, str]:
    with pytest.raises(SpecInvalid) as caught:
        looked_at(name, file, **more)
    return {problem.path: str(problem) for problem in caught.value.problems}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "table.csv", table_rows(2_000))


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    rows = table_rows(2_000)
    for number in range(3):
        write_table(folder / f"{number}.csv", rows[number::3])
    return folder


def test_it_turns_columns_into_numbers(table: Path) -> None:
    spec = looked_at("csv", table, target="label")
    info, loaded = spec.dataset_info, data.load(spec)
    assert (info.task, info.shape, info.classes, info.samples, info.files) == ("classification", (5,), 2, 2_000, None)
    features = np.concatenate([loaded.training.features, loaded.validation.features])  # type: ignore[union-attr]
    assert features[:, :2].mean(0) == pytest.approx([0, 0], abs=1e-4)
    assert features[:, :2].std(0) == pytest.approx([1, 1], abs=1e-4)
    assert features[:, 2:].sum(axis=1).tolist() == [1.0] * 2_000


def test_it_puts_codes_of_categories_first(table: Path) -> None:
    spec = looked_at("csv", table, target="a", categories="codes", ignore=["label"], model=WIDE)
    assert spec.dataset_info.categories == (3,)
    assert (spec.dataset_info.task, spec.dataset_info.shape) == ("regression", (2,))
    loaded = data.load(spec)
    assert set(loaded.training.features[:, 0]) == {0, 1, 2}  # type: ignore[union-attr]
    assert loaded.training.targets.shape == (1_600, 1)  # type: ignore[union-attr]


def test_it_says_what_is_missing_and_does_as_it_is_told(tmp_path: Path) -> None:
    rows = ["1,red,a,yes", "3,,b,no", ",blue,a,yes", "2,red,b,", "2,blue,b,no"] * 10
    path = write_table(tmp_path / "t.csv", rows, "x,colour,label,ok")
    small = {"global_batch": 5}
    said = refused("csv", path, target="label", training=small)["dataset.options.missing"]
    assert "some rows have no value in x (10), colour (10), ok (10)" in said
    assert "Use drop or mean" in said
    assert looked_at("csv", path, target="label", missing="drop", training=small).dataset_info.samples == 20
    kept = looked_at("csv", path, target="label", missing="mean", training={**small, "validation_split": 0})
    features = data.load(kept).training.features  # type: ignore[union-attr]
    assert features[1].tolist() == pytest.approx([2**0.5, 0, 0, 0], abs=1e-4)
    assert features[2].tolist() == [0, 1, 0, 1]
    assert features[3, 3] == 0.5
    assert "has no value in 10 rows" in refused("csv", path, target="ok", missing="mean")["dataset.options.target"]


@pytest.mark.parametrize(
    ("options", "path", "said"),
    [
        ({"target": "price"}, "target", "Columns: a, b, colour, label"),
        ({}, "target", "is required"),
        ({"target": "label", "ignore": ["price"]}, "ignore", "is not a column"),
        ({"target": "label", "ignore": ["a", "b", "colour"]}, "ignore", "leaves no column"),
        ({"target": "a", "task": "classification"}, "target", "holds numbers that are not whole"),
        ({"target": "label", "task": "regression"}, "task", "needs a number to tell"),
    ],
)
def test_it_refuses_options_that_do_not_fit_the_file(
    options: dict[str, Any], path: str, said: str, table: Path
) -> None:
    assert said in refused("csv", table, **options)[f"dataset.options.{path}"]


def test_it_needs_a_file_that_somebody_has_looked_at(table: Path) -> None:
    with pytest.raises(SpecInvalid, match=r"dataset.options.file: has not been looked at"):
        parse(document("csv", table, target="label"))
    assert "is not there" in refused("csv", table.with_name("none.csv"), target="label")["dataset.options.file"]


def test_it_notices_a_file_that_has_changed_since(table: Path) -> None:
    spec = looked_at("csv", table, target="label")
    write_table(table, table_rows(1_000))
    with pytest.raises(data.DataError, match="when looked at; put the same file there again"):
        data.load(spec)


@pytest.mark.parametrize(
    ("sharding", "strategy", "path", "said"),
    [
        ("file", PAIR, "training.sharding", "is held in memory whole"),
        ("off", {"name": "parameter_server"}, "training.sharding", "workers that step together"),
    ],
)
def test_it_refuses_sharding_of_what_is_in_memory(sharding: str, strategy: Any, path: str, said: str) -> None:
    with pytest.raises(SpecInvalid) as caught:
        parse(seed_with(strategy=strategy, training={"sharding": sharding}))
    assert said in {problem.path: str(problem) for problem in caught.value.problems}[path]


def test_it_refuses_fewer_files_than_workers_and_an_order_that_none_decides(table: Path) -> None:
    streamed = {"target": "label", "in_memory": "never"}
    for training, path, said in (
        ({"sharding": "file"}, "training.sharding", "there is 1 file. Use data, ask for 1 workers"),
        ({"deterministic": False}, "training.deterministic", "disagree on the order"),
    ):
        spec = {**document("csv", table, training=training, **streamed), "strategy": PAIR}
        with pytest.raises(SpecInvalid) as caught:
            parse(files_here.resolve(spec))
        [problem] = caught.value.problems
        assert problem.path == path
        assert said in str(problem).replace(" (got file)", "")


def test_parquet_gives_the_same_numbers_as_csv(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(csv.read_csv(table), path, row_group_size=300)
    wholes = [data.load(looked_at(name, file, target="label")) for name, file in (("csv", table), ("parquet", path))]
    assert np.allclose(wholes[0].training.features, wholes[1].training.features, atol=1e-6)  # type: ignore[union-attr]
    assert np.array_equal(wholes[0].training.targets, wholes[1].training.targets)  # type: ignore[union-attr]
    spec = looked_at("parquet", path, target="label", in_memory="never")
    streamed: Any = data.load(spec).training
    assert [piece.rows for piece in streamed.source.pieces] == [300] * 6 + [200]
    assert sum(len(targets) for _, targets in streamed.blocks(range(7))) == len(streamed) == 1_600


def test_npz_is_loaded_with_its_test_part(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    pictures = np.arange(60 * 16, dtype=np.uint64).reshape(60, 4, 4).astype(np.uint8)
    labels = np.arange(60) % 3
    np.savez(path, x_train=pictures, y_train=labels, x_test=pictures[:9], y_test=labels[:9])
    spec = looked_at("npz", path, training={"global_batch": 10})
    assert (spec.dataset_info.shape, spec.dataset_info.classes) == ((4, 4), 3)
    loaded = data.load(spec)
    assert (len(loaded.training), len(loaded.validation), len(loaded.test)) == (48, 12, 9)
    assert loaded.scale == 1 / 255
    np.savez(path, x=pictures, y=labels - 1)
    assert "label -1" in refused("npz", path, training={"global_batch": 10})["dataset.options.target"]
    np.savez(path, a=pictures, b=labels[:50], c=labels)
    said = refused("npz", path, features="a", target="b", training={"global_batch": 10})["dataset.options.target"]
    assert "as many rows" in said
    assert "a, b" in refused("npz", path)["dataset.options.features"]
    assert "is what the model is shown" in refused("npz", path, features="a", target="a")["dataset.options.target"]


def test_workers_train_alike_on_a_table_from_disk_and_on_data_in_memory(
    house: House, tables: Path, tmp_path: Path
) -> None:
    spec = files_here.resolve(document("csv", tables, target="label", in_memory="never", shuffle_buffer=300))
    pair = {**spec, "strategy": PAIR}
    by_file = {**pair, "training": {**spec["training"], "sharding": "file"}}
    runs = [tmp_path / name for name in ("alone", "both", "own")]
    for each, run in zip((spec, pair, by_file), runs, strict=True):
        house.run(each, run)
    house.run(seed_with(strategy=PAIR, training={"sharding": "off", "epochs": 3}), tmp_path / "memory")
    assert series(tmp_path / "memory", "val_accuracy")[33] > 0.8
    for run in runs:
        assert series(run, "val_accuracy")[128] > 0.9
        assert min(series(run, "input_wait").values()) >= 0
    losses = [series(run) for run in runs]
    assert list(losses[0]) == list(range(1, 129))
    assert list(losses[0].values()) == pytest.approx(list(losses[1].values()), abs=1e-5)
    assert losses[2] != losses[1]


def test_it_trains_on_a_file_three_times_as_large_as_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    random = np.random.default_rng(0)
    with path.open("wb") as stream:
        stream.write(b",".join(b"x%d" % number for number in range(20)) + b",label\n")
        lines = [
            b",".join(b"%.6f" % value for value in row) + b",%d\n" % (row[0] > 0)
            for row in random.normal(size=(4_000, 20))
        ]
        while stream.tell() < 192 * 2**20:
            stream.writelines(lines)
    limit = 64 * 2**20
    assert path.stat().st_size >= 3 * limit
    answer = run_script("small_memory.py", str(path), str(limit), **HONEST)
    assert answer["streamed"]["accuracy"] > 0.9
    assert answer["streamed"]["samples"] * 20 * 4 > limit
    # Its rows as numbers do not fit: it is a limit.
    assert "MemoryError" in answer["whole"]


def test_the_example_trains_with_files_of_ones_own(by_hand: Start) -> None:
    run = by_hand(yaml.safe_load((EXAMPLES / "iris.yaml").read_text()))
    assert run.finish() == 0, run.stderr
    assert max(run.series("val_accuracy").values()) > 0.8


def test_a_text_is_cut_into_windows(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Grüße! " * 100)
    spec = looked_at("text", path, length=8, model=LM, training={"global_batch": 8})
    assert (spec.dataset_info.tokens, spec.dataset_info.samples, spec.dataset_info.test_samples) == (7, 79, 8)
    loaded = data.load(spec)
    training: Any = loaded.training
    assert np.array_equal(training.features[:, 1:], training.targets[:, :-1])
    by_bytes = looked_at("text", path, length=8, tokens="bytes", model=LM, training={"global_batch": 8})
    assert (by_bytes.dataset_info.tokens, by_bytes.dataset_info.samples) == (256, 101)
    assert "too few for one window" in refused("text", path, length=2000)["dataset.options.file"]
    long = by_bytes.model_dump(mode="json")
    long["dataset"]["options"]["length"] = 2000
    with pytest.raises(SpecInvalid, match="more than the text has: 900 bytes"):
        parse(long)
    path.write_text("Grüßt? " * 100)
    with pytest.raises(data.DataError, match="submit the job with the new file"):
        data.load(spec)


def test_coded_categories_ask_for_wide_and_deep(table: Path) -> None:
    assert looked_at("csv", table, target="label", categories="codes", model=WIDE).dataset_info.categories
    said = refused("csv", table, target="label", categories="codes")
    assert "Choose wide_and_deep" in said["model.name"]
