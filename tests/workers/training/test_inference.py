"""Jobs that take no steps: exact metrics, one prediction for each example in the data's order, and exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.workers.training.conftest import ALONE, PAIR, ByHand
from tests.workers.training.warm import House, events, series
from workers.training import files_here

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]
HELD_OUT = 359
"""Of 1797 digits; a prime, so that no number of replicas divides it."""
NORMALIZED = {"name": "cnn", "options": {"filters": [4], "units": 16, "dropout": 0.2, "batch_norm": True}}
CENTRAL = {"name": "central_storage", "options": {"devices": 2, "device_type": "cpu"}}
MESH = {"name": "model_parallel", "options": {"mesh": {"batch": 2, "model": 1}, "device_type": "cpu"}}


def job(kind: str, strategy: dict[str, Any], **changes: Any) -> dict[str, Any]:
    training = {"global_batch": 100, "validation_split": 0.2, **changes.pop("training", {})}
    return {
        "version": "lockstep/v1",
        "name": kind,
        "kind": kind,
        "dataset": {"name": "digits"},
        "model": NORMALIZED,
        "strategy": strategy,
        "training": training,
        **changes,
    }


class Trained(NamedTuple):
    """What was trained, where, and what Keras found so far."""

    house: House
    run: Path
    found: dict[tuple[str, float], dict[str, Any]]

    @property
    def checkpoint(self) -> Path:
        return self.run / "checkpoints" / "step-20"

    def put_to_use(self, spec: dict[str, Any], run: Path) -> None:
        self.house.run(spec, run, resume=self.checkpoint)

    def expected(self, split: str, validation_split: float = 0.2) -> dict[str, Any]:
        """What Keras itself finds on one device."""
        if (split, validation_split) not in self.found:
            spec = job("evaluate", ALONE, training={"validation_split": validation_split})
            [answer] = self.house.alone.ask({"evaluate": str(self.run / "model.keras"), "spec": spec, "split": split})
            self.found[split, validation_split] = answer
        return self.found[split, validation_split]


@pytest.fixture(scope="module")
def trained(house: House, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    run = tmp_path_factory.mktemp("trained")
    house.run(job("train", ALONE, training={"steps": 20, "global_batch": 120}, checkpoint={"every_steps": 20}), run)
    return Trained(house, run, {})


@pytest.mark.parametrize("strategy", [ALONE, PAIR, CENTRAL, MESH], ids=lambda each: each["name"])
def test_it_evaluates_exactly_as_keras_does_on_one_device(
    strategy: dict[str, Any], trained: Trained, tmp_path: Path
) -> None:
    trained.put_to_use(job("evaluate", strategy), tmp_path)
    expected = trained.expected("validation")
    told = events(tmp_path)[-1]
    assert told.type == "finished"
    assert told.step == 0
    assert told.metrics == pytest.approx({f"val_{key}": expected[key] for key in ("loss", "accuracy")}, abs=1e-6)
    assert series(tmp_path, "val_loss") == {0: told.metrics["val_loss"]}


def test_it_takes_all_examples_for_the_test_where_nothing_is_held_out(trained: Trained, tmp_path: Path) -> None:
    trained.put_to_use(job("evaluate", ALONE, training={"validation_split": 0}), tmp_path)
    expected = trained.expected("training", 0.0)
    told = events(tmp_path)[-1]
    assert told.type == "finished"
    assert told.metrics == pytest.approx({f"test_{key}": expected[key] for key in ("loss", "accuracy")}, abs=1e-6)


@pytest.mark.parametrize("strategy", [ALONE, PAIR, CENTRAL, MESH], ids=lambda each: each["name"])
def test_it_predicts_each_example_once_and_in_order(strategy: dict[str, Any], trained: Trained, tmp_path: Path) -> None:
    trained.put_to_use(job("predict", strategy, predict={"split": "validation"}), tmp_path)
    expected = trained.expected("validation")
    found = parquet.read_table(tmp_path / "predictions.parquet")
    assert found["index"].to_pylist() == list(range(HELD_OUT))
    assert found["target"].to_pylist() == expected["targets"]
    np.testing.assert_allclose(found["probabilities"].to_pylist(), expected["probabilities"], atol=1e-5)
    assert found["class"].to_pylist() == np.argmax(expected["probabilities"], 1).tolist()
    [artifact] = [event for event in events(tmp_path) if event.type == "artifact"]
    assert artifact.name == "predictions.parquet"
    assert not list(tmp_path.glob(".unfinished*"))


def test_it_predicts_all_examples_in_blocks_though_some_are_held_out(trained: Trained, tmp_path: Path) -> None:
    trained.put_to_use(job("predict", PAIR), tmp_path)
    expected = trained.expected("training", 0.0)
    found = parquet.read_table(tmp_path / "predictions.parquet")
    assert found.num_rows == 1797
    assert found["target"].to_pylist() == expected["targets"]
    np.testing.assert_allclose(found["probabilities"].to_pylist(), expected["probabilities"], atol=1e-5)


@pytest.mark.parametrize("strategy", [ALONE, PAIR], ids=lambda each: each["name"])
def test_it_predicts_what_is_read_from_disk_in_the_order_of_the_files(
    strategy: dict[str, Any], trained: Trained, tmp_path: Path
) -> None:
    rows, folder = 401, tmp_path / "tables"
    folder.mkdir()
    numbers = np.arange(rows, dtype=np.float32)
    for part, chosen in enumerate(np.array_split(numbers, 3)):
        table = pa.table({"x": chosen, "z": np.sin(chosen), "y": chosen / 7})
        parquet.write_table(table, folder / f"{part}.parquet", row_group_size=50)
    options = {"file": str(folder), "target": "y", "in_memory": "never"}
    common = {"dataset": {"name": "parquet", "options": options}, "model": {"name": "linear"}}
    begun = job("train", ALONE, training={"steps": 1, "global_batch": 6}, checkpoint={"every_steps": 1}, **common)
    trained.house.run(files_here.resolve(begun), tmp_path / "begun")
    checkpoint = tmp_path / "begun" / "checkpoints" / "step-1"
    spec = files_here.resolve(job("predict", strategy, **common))
    trained.house.run(spec, tmp_path / "run", resume=checkpoint)
    found = parquet.read_table(tmp_path / "run" / "predictions.parquet")
    assert found.column_names == ["index", "value", "target"]
    np.testing.assert_allclose(found["target"].to_pylist(), numbers / 7, rtol=1e-6)
    # A linear model's answers are its features put together, each row's own.
    features = np.stack([numbers, np.sin(numbers), np.ones(rows)], 1)
    values = np.asarray(found["value"].to_pylist())
    fitted = features @ np.linalg.lstsq(features, values, rcond=None)[0]
    assert np.std(values) > 0
    np.testing.assert_allclose(values, fitted, atol=1e-4 * np.abs(values).max())


def test_it_exports_the_weights_of_the_checkpoint(trained: Trained, tmp_path: Path) -> None:
    trained.put_to_use(job("export", PAIR, export=["keras", "saved_model"]), tmp_path)
    assert [event.name for event in events(tmp_path) if event.type == "artifact"] == ["model.keras", "saved_model.zip"]
    features = np.random.default_rng(1).random((5, 8, 8, 1)).tolist()
    for keras in (tmp_path / "model.keras", trained.run / "model.keras"):
        asked = {"saved_model": str(tmp_path / "saved_model.zip"), "keras": str(keras), "features": features}
        [answer] = trained.house.alone.ask(asked)
        assert answer["distance"] < 1e-6


def test_it_refuses_a_checkpoint_of_other_weights(trained: Trained, tmp_path: Path) -> None:
    wider = {"name": "cnn", "options": {**NORMALIZED["options"], "filters": [5]}}
    spec = job("evaluate", ALONE, model=wider)
    error = trained.house.alone.run(spec, tmp_path, resume=trained.checkpoint)
    assert "step-20 does not fit" in error
    assert "choose the model's options as they were" in error


def test_it_predicts_by_hand(trained: Trained, by_hand: Callable[..., ByHand]) -> None:
    one = {"name": "one_device", "options": {"device": "cpu"}}
    run = by_hand(job("predict", one), "--resume", str(trained.checkpoint))
    assert run.finish() == 0, run.stderr
    assert "predict done" in run.stderr
    assert [event.name for event in run.events if event.type == "artifact"] == ["predictions.parquet"]
    assert (run.out / "predictions.parquet").exists()


def test_it_starts_nothing_by_hand_without_weights(by_hand: Callable[..., ByHand]) -> None:
    run = by_hand(job("evaluate", ALONE))
    assert run.finish() == 2
    assert "--resume: is missing, and a job to evaluate needs the weights of one. Give a checkpoint" in run.stderr
