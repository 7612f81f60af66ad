"""Data on disk where work is dealt out or split over a mesh: as on one device, from wherever it goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from tests.waiting import wait_for
from tests.workers.file_corpus import table_rows, write_table
from tests.workers.training.conftest import ByHand, seed_with
from tests.workers.training.test_engine import engine_processes
from workers.contract.problems import SpecInvalid
from workers.contract.spec import parse
from workers.training import files_here

Start = Callable[..., ByHand]
WIDE = {"name": "wide_and_deep", "options": {"width": 4, "units": [16]}}
OTHERS: dict[str, dict[str, Any]] = {
    "parameter_server": {
        "name": "parameter_server",
        "options": {"workers": 1, "parameter_servers": 2, "partitioner": "fixed_shards"},
    },
    "model_parallel": {"name": "model_parallel", "options": {"mesh": {"batch": 2, "model": 2}}},
}


def job(file: Path, strategy: dict[str, Any], **training: Any) -> dict[str, Any]:
    """Of 28 steps, 12 of them an epoch; Adam, since it minds how often an embedding's gradient comes."""
    options = {"file": str(file), "target": "label", "categories": "codes", "in_memory": "never", "shuffle_buffer": 100}
    given = {"epochs": None, "steps": 28, "global_batch": 40, "optimizer": {"name": "adam", "learning_rate": 0.01}}
    spec = seed_with(strategy=strategy, model=WIDE, training={**given, **training})
    return {**spec, "dataset": {"name": "csv", "options": options}, "checkpoint": {"every_steps": 8, "keep": 5}}


def phases(run: ByHand) -> set[tuple[str, str]]:
    """Which process was at what."""
    return {(event.process, event.phase) for event in run.events if event.type == "phase"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("table") / "table.csv", table_rows(600))


@pytest.fixture(scope="module")
def alone(table: Path, tmp_path_factory: pytest.TempPathFactory) -> ByHand:
    run = ByHand(job(table, {"name": "one_device"}), tmp_path_factory.mktemp("alone"))
    assert run.finish() == 0, run.stderr
    return run


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", OTHERS)
def test_it_goes_on_from_disk_as_one_device_does(name: str, table: Path, alone: ByHand, by_hand: Start) -> None:
    run = by_hand(job(table, OTHERS[name]), "--resume", str(alone.out / "checkpoints" / "step-8"))
    assert run.finish() == 0, run.stderr
    losses, expected = run.series("loss"), alone.series("loss")
    assert list(losses) == list(range(9, 29))
    assert list(losses.values()) == pytest.approx(list(expected.values())[8:], abs=1e-5)
    assert run.series("val_loss")[28] == pytest.approx(alone.series("val_loss")[28], abs=1e-6)
    assert min(run.series("input_wait").values()) >= 0
    with (
        np.load(run.out / "checkpoints/step-28/state.npz") as own,
        np.load(alone.out / "checkpoints/step-28/state.npz") as other,
    ):
        kept = [key for key in other if other[key].dtype == np.float32]
        assert len(kept) > 10
        for key in kept:
            assert own[key] == pytest.approx(other[key], abs=1e-5), key


@pytest.mark.tensorflow
def test_workers_evaluate_for_their_chief_as_one_device_does(table: Path, alone: ByHand, by_hand: Start) -> None:
    spec = {**job(table, {"name": "parameter_server", "options": {"workers": 1}}), "kind": "evaluate"}
    run = by_hand(spec, "--resume", str(alone.out))
    assert run.finish() == 0, run.stderr
    for name in ("val_loss", "val_accuracy"):
        assert run.series(name)[0] == pytest.approx(alone.series(name)[28], abs=1e-6)
    assert "evaluating" in {
        event.phase for event in run.events if event.type == "phase" and event.process == "worker-0"
    }


@pytest.mark.tensorflow
def test_it_predicts_in_order_whoever_is_lost(alone: ByHand, tmp_path: Path, by_hand: Start) -> None:
    rows, times = table_rows(600), 100
    spec = {**job(write_table(tmp_path / "again.csv", rows * times), {"name": "parameter_server"}), "kind": "predict"}
    run = by_hand(spec, "--resume", str(alone.out))
    at_work = ("worker-1", "predicting")
    wait_for(lambda: at_work in phases(run), seconds=200, what="the first predictions")
    engine_processes(run)["worker-1"].kill()
    assert run.finish() == 0, run.stderr
    assert "worker-1 was ended by SIGKILL; the job goes on without it" in run.stderr
    found = parquet.read_table(run.out / "predictions.parquet")
    assert found["index"].to_pylist() == list(range(600 * times))
    assert found["target"].to_pylist() == [int(row.endswith("up")) for row in rows] * times
    probabilities = np.reshape(found["probabilities"].to_pylist(), (times, 600, 2))
    assert np.abs(probabilities - probabilities[0]).max() < 1e-6
    assert len(np.unique(probabilities[0])) > 500


def test_a_chief_that_reads_alone_may_read_in_any_order(table: Path) -> None:
    servers = {"name": "parameter_server", "options": {"workers": 2}}
    assert not parse(files_here.resolve(job(table, servers, deterministic=False))).training.deterministic


def test_processes_of_a_mesh_take_no_files_of_their_own(table: Path) -> None:
    mesh = {"name": "model_parallel", "options": {"mesh": {"batch": 2, "model": 1}, "processes": 2}}
    with pytest.raises(SpecInvalid) as refused:
        parse(files_here.resolve(job(table, mesh, sharding="file")))
    assert "the processes of a mesh take every batch together (got file). Use auto or data" in str(refused.value)
