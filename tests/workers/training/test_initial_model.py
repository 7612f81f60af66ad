"""Starting from given weights, and refusing a file that cannot be started from."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.workers.training.conftest import ALONE, ByHand, seed_with
from tests.workers.training.warm import House
from workers.contract.problems import SpecInvalid
from workers.contract.spec import parse
from workers.training.checkpointing import initial_model

Start = Callable[..., ByHand]


def starting_from(path: Path | str, **changes: Any) -> dict[str, Any]:
    return seed_with(training={"initial_model": str(path), **changes.pop("training", {})}, **changes)


def refusal(path: Path) -> str:
    with pytest.raises(SpecInvalid) as caught:
        initial_model.resolve(parse(starting_from(path)))
    [problem] = caught.value.problems
    assert problem.path == "training.initial_model"
    assert problem.value == str(path)
    return str(problem)


def weights(path: Path) -> list[NDArray[np.float32]]:
    """Of a model that Keras saved, the random numbers' states aside."""
    with zipfile.ZipFile(path) as archive, h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
        found: list[NDArray[np.float32]] = []
        file.visititems(lambda _, each: found.append(each[()]) if isinstance(each, h5py.Dataset) else None)
    return [each for each in found if each.dtype == np.float32]


def whole(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("config.json", "metadata.json", "model.weights.h5"):
            archive.writestr(name, name * 1000)
    return path


def test_it_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "is not there" in refusal(tmp_path / "gone.keras")


def test_it_refuses_a_folder(tmp_path: Path) -> None:
    assert "cannot be read: Is a directory" in refusal(tmp_path)


def test_it_refuses_a_file_that_was_cut_off(tmp_path: Path) -> None:
    file = whole(tmp_path / "model.keras")
    file.write_bytes(file.read_bytes()[:-100])
    assert "is torn" in refusal(file)


def test_it_refuses_a_file_with_a_flipped_byte(tmp_path: Path) -> None:
    file = whole(tmp_path / "model.keras")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert "is torn" in refusal(file)


def test_it_refuses_an_archive_of_something_else(tmp_path: Path) -> None:
    file = tmp_path / "model.keras"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("config.json", "{}")
    assert "holds no model.weights.h5" in refusal(file)


def test_it_names_the_whole_path_wherever_the_engine_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(tmp_path / "model.keras")
    monkeypatch.chdir(tmp_path)
    spec = initial_model.resolve(parse(starting_from("model.keras")))
    assert spec.training.initial_model == str(tmp_path / "model.keras")


@pytest.mark.tensorflow
def test_it_starts_nothing_with_a_file_that_is_not_there(by_hand: Start, tmp_path: Path) -> None:
    run = by_hand(starting_from(tmp_path / "gone.keras"))
    assert run.finish() == 2
    assert "/gone.keras" in run.stderr
    assert not run.out.exists()


@pytest.fixture(scope="module")
def trained(house: House, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("trained")
    house.run(seed_with(strategy=ALONE, training={"epochs": None, "steps": 2}), run)
    return run / "model.keras"


@pytest.mark.tensorflow
@pytest.mark.parametrize("strategy", ["mirrored", "model_parallel"])
def test_it_trains_on_from_the_weights_of_another_run(
    strategy: str, house: House, trained: Path, tmp_path: Path
) -> None:
    still = {"optimizer": {"name": "sgd", "learning_rate": 1e-30}, "epochs": None, "steps": 1, "seed": 7}
    chosen = ALONE if strategy == "mirrored" else {"name": strategy, "options": {"device_type": "cpu"}}
    house.run(starting_from(trained, strategy=chosen, training=still), tmp_path)
    for one, other in zip(weights(trained), weights(tmp_path / "model.keras"), strict=True):
        # A bias that is still zero takes a step that small.
        assert np.abs(one - other).max() < 1e-25


@pytest.mark.tensorflow
def test_it_refuses_the_weights_of_another_model_by_name(by_hand: Start, trained: Path) -> None:
    model = {"name": "mlp", "options": {"units": [256, 64], "dropout": [0.4, 0.3]}}
    run = by_hand(starting_from(trained, model=model, strategy={"name": "one_device"}))
    assert run.finish() == 1
    assert f"training.initial_model {trained} does not fit" in run.stderr
    assert "(256, 64) in the model and (256, 128) in the file" in run.stderr
    assert "Traceback" not in run.stderr
    assert not run.series("loss")
