"""The file of predictions: its columns for each kind of task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from workers.contract.spec import parse
from workers.training.inference import predictions


def written(file: Path, model: str, dataset: dict[str, Any], *blocks: Any) -> dict[str, list[Any]]:
    """The columns of a file that holds these blocks."""
    strategy = {"name": "one_device"}
    common = {"version": "lockstep/v1", "name": "p", "kind": "predict", "strategy": strategy}
    spec = parse({**common, "dataset": dataset, "model": {"name": model}})
    rows = predictions.write(file, spec, iter([np.asarray(block, np.float32) for block in blocks]))
    found: dict[str, list[Any]] = parquet.read_table(file).to_pydict()
    assert found["index"] == list(range(rows))
    return found


def test_it_keeps_class_probabilities_and_target(tmp_path: Path) -> None:
    found = written(tmp_path / "p", "linear", {"name": "wine"}, [[2, 0.25, 0.25, 0.5, 1]], [[0, 1, 0, 0, 0]])
    assert list(found) == ["index", "class", "probabilities", "target"]
    assert (found["class"], found["target"]) == ([2, 0], [1, 0])
    assert found["probabilities"] == [[0.25, 0.25, 0.5], [1, 0, 0]]


def test_it_keeps_one_value_and_its_target(tmp_path: Path) -> None:
    found = written(tmp_path / "p", "linear", {"name": "diabetes"}, [[1.5, 2], [3, 4]], np.zeros((0, 2)))
    assert (found["value"], found["target"]) == ([1.5, 3], [2, 4])


def test_it_keeps_the_tokens_that_follow(tmp_path: Path) -> None:
    found = written(tmp_path / "p", "transformer_lm", {"name": "tiny_text"}, [[*range(32), *range(1, 33)]])
    assert (found["tokens"], found["target"]) == ([[*range(32)]], [[*range(1, 33)]])


def test_it_keeps_the_values_of_a_reconstruction(tmp_path: Path) -> None:
    found = written(tmp_path / "p", "autoencoder", {"name": "digits"}, [[*range(64), 7]])
    assert list(found) == ["index", "values"]
    assert found["values"] == [pytest.approx(range(64))]
