"""The format of checkpoints: whole or not there, and refused by name when torn, strange or of another version."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.waiting import wait_for
from tests.workers.training.conftest import ROOT
from tests.workers.training.snapshots import linear, manifest, written
from workers.contract.problems import SpecInvalid
from workers.contract.spec import JobSpec, parse
from workers.training.checkpointing import checkpoints, resuming
from workers.training.checkpointing.checkpoints import CheckpointError


def tear(checkpoint: Path) -> None:
    file = checkpoint / checkpoints.STATE
    file.write_bytes(file.read_bytes()[:-100])


def flip(checkpoint: Path) -> None:
    file = checkpoint / checkpoints.STATE
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def change(checkpoint: Path, **values: Any) -> None:
    file = checkpoint / checkpoints.MANIFEST
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def test_it_reads_what_it_wrote(tmp_path: Path) -> None:
    arrays = {
        "model/dense/kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
        "optimizer/iteration": np.asarray(7, np.int64),
        "random/0": np.asarray([1, 2], np.uint32),
    }
    told = checkpoints.write(tmp_path, manifest(7, metrics={"loss": float("nan")}), arrays)
    assert [path.name for path in tmp_path.iterdir()] == ["step-7"]
    read = checkpoints.validate(tmp_path / "step-7")
    assert read.model_dump_json() == told.model_dump_json()
    assert (read.step, read.samples_seen, read.spec) == (7, 7 * 128, linear())
    found = checkpoints.read_arrays(tmp_path / "step-7")
    assert {name: (value.dtype, value.tolist()) for name, value in found.items()} == {
        name: (value.dtype, value.tolist()) for name, value in arrays.items()
    }


def test_it_replaces_one_of_the_same_step(tmp_path: Path) -> None:
    written(tmp_path, 7)
    checkpoints.write(tmp_path, manifest(7), {"model/x": np.ones(3)})
    assert list(checkpoints.read_arrays(tmp_path / "step-7")) == ["model/x"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (tear, "is torn: state.npz has"),
        (flip, "is torn: state.npz is not what was written"),
        (lambda path: (path / checkpoints.STATE).unlink(), "is torn: state.npz cannot be read"),
        (lambda path: (path / checkpoints.MANIFEST).unlink(), "has no manifest.json: it is torn, or not a checkpoint"),
        (lambda path: (path / checkpoints.MANIFEST).write_text('{"version'), "is torn: its manifest.json cannot be"),
        (lambda path: change(path, step="x"), "is torn: its manifest.json makes no sense at step"),
        (lambda path: change(path, files={}), "is torn: its manifest.json names no state.npz"),
        (lambda path: change(path, version="lockstep/v9"), "is of version lockstep/v9, and this Lockstep reads"),
        (shutil.rmtree, "is not there"),
    ],
)
def test_it_refuses_one_that_is_damaged_and_offers_another(damage: Any, words: str, tmp_path: Path) -> None:
    _, good, bad = written(tmp_path, 5, 6, 7)
    damage(bad)
    with pytest.raises(CheckpointError) as torn:
        checkpoints.validate(bad)
    assert str(torn.value).startswith(f"{bad} {words}")
    with pytest.raises(SpecInvalid) as refused:
        resuming.choose(bad, linear())
    said = str(refused.value)
    assert f"--resume: {bad} {words}" in said
    assert said.endswith(f"Use --resume {good}")


def other_dataset() -> JobSpec:
    options = {"shape": [8, 8, 1], "classes": 10, "samples": 1797}
    return parse({**linear().to_dict(), "dataset": {"name": "synthetic_images", "options": options}})


def other_model() -> JobSpec:
    return parse({**linear().to_dict(), "model": {"name": "mlp"}})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (other_model(), "is of the model linear, and the job has mlp"),
        (other_dataset(), "is of the dataset digits, and the job has synthetic_images"),
        (linear(optimizer={"name": "adam"}), "was trained by rmsprop, and the job has adam"),
        (linear(epochs=None, steps=7), "is at step 7 of a job of 7: raise training.steps or epochs to go on"),
        (linear(epochs=None, steps=6), "is at step 7 of a job of 6"),
    ],
)
def test_it_refuses_one_that_does_not_fit_the_job(spec: JobSpec, words: str, tmp_path: Path) -> None:
    [checkpoint] = written(tmp_path, 7)
    with pytest.raises(SpecInvalid, match=words) as refused:
        resuming.choose(checkpoint, spec)
    assert str(checkpoint) in str(refused.value)


def test_it_refuses_a_model_of_another_size(tmp_path: Path) -> None:
    narrow, wide = (
        parse({**linear().to_dict(), "model": {"name": "mlp", "options": {"units": [units], "dropout": [0]}}})
        for units in (8, 9)
    )
    arrays = {"model/one": np.zeros(64 * 8 + 8), "model/two": np.zeros((8, 10)), "model/three": np.zeros(10)}
    checkpoints.write(tmp_path, manifest(7, narrow), arrays)
    assert resuming.choose(tmp_path / "step-7", narrow) == tmp_path / "step-7"
    with pytest.raises(SpecInvalid, match=r"holds 610 parameters and the model has 685 \(units was \[8\], is \[9\]\)"):
        resuming.choose(tmp_path / "step-7", wide)


def test_it_names_the_first_weight_that_does_not_fit() -> None:
    arrays = {"model/dense/kernel": np.zeros((2, 3)), "optimizer/velocity/dense/kernel": np.zeros((2, 3))}
    wanted: dict[str, tuple[int, ...]] = {"model/dense/kernel": (2, 3), "optimizer/momentum/dense/kernel": (2, 3)}
    assert resuming.unfit(wanted, arrays) == ""
    assert "model/dense/kernel is (3, 2) in the job and (2, 3)" in resuming.unfit(
        {**wanted, "model/dense/kernel": (3, 2)}, arrays
    )
    assert resuming.unfit({**wanted, "model/more": ()}, arrays) == "lacks model/more, which the model has"
    assert resuming.unfit({}, arrays) == "holds model/dense/kernel, which the model has not"


def test_it_takes_the_newest_whole_one_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, good, bad = written(tmp_path / "checkpoints", 9, 10, 11)
    tear(bad)
    assert resuming.choose(tmp_path, linear()) == good
    assert f"passed over: {bad} is torn" in capsys.readouterr().err


def test_it_says_when_a_run_has_none(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(SpecInvalid, match="finds nothing to go on from below"):
        resuming.choose(tmp_path, linear())


@pytest.mark.parametrize(("batch", "step"), [(128, 7), (64, 14), (100, 8), (256, 3)])
def test_it_goes_on_at_the_same_number_of_samples_seen(batch: int, step: int) -> None:
    assert resuming.step_in(linear(global_batch=batch), manifest(7)) == step


def test_it_counts_the_warm_up_in_steps_of_the_new_size(tmp_path: Path) -> None:
    arrays = {"model/x": np.zeros(3), "optimizer/iteration": np.asarray(7, np.int64)}
    told = checkpoints.write(tmp_path, manifest(7), arrays)
    wanted: dict[str, tuple[int, ...]] = {"model/x": (3,), "optimizer/iteration": ()}
    for batch, step in ((128, 7), (64, 14)):
        found = resuming.arrays_for(linear(global_batch=batch), tmp_path / "step-7", told, wanted)
        assert (found["optimizer/iteration"], found["optimizer/iteration"].dtype) == (step, np.int64)


@pytest.mark.parametrize("attempt", range(3))
def test_it_leaves_only_whole_ones_when_it_is_killed_while_it_writes(attempt: int, tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("write_checkpoints.py"))
    child = subprocess.Popen([sys.executable, script, str(tmp_path), "24"], cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
    try:
        wait_for(lambda: checkpoints.among(tmp_path), seconds=60, what="the first checkpoint")
        # At another moment each time: as soon as there is a folder, a file of some size, the manifest.
        at = [".step-*", f".step-*/{checkpoints.STATE}", f".step-*/{checkpoints.MANIFEST}"][attempt]
        wait_for(lambda: next(tmp_path.glob(at), None), seconds=60, what="a checkpoint on its way")
    finally:
        child.kill()
        child.wait()
    found = checkpoints.among(tmp_path)
    assert found
    for checkpoint in found:
        checkpoints.validate(checkpoint)
    assert checkpoints.newest(tmp_path) == found[0]
    checkpoints.sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in found)


def put_to_use(**changes: Any) -> JobSpec:
    """A job that evaluates the linear model."""
    rest = {name: value for name, value in linear().to_dict().items() if name != "training"}
    return parse({**rest, "kind": "evaluate", **changes})


def test_a_job_that_takes_no_steps_may_use_any_checkpoint_whose_weights_fit(tmp_path: Path) -> None:
    spec = linear(epochs=None, steps=7)
    arrays = {"model/logits/kernel": np.zeros((64, 10), np.float32), "model/logits/bias": np.zeros(10)}
    checkpoints.write(tmp_path, manifest(7, spec), arrays)
    images = {"name": "synthetic_images", "options": {"shape": [8, 8, 1], "classes": 10, "samples": 50}}
    for use in (put_to_use(), put_to_use(dataset=images), put_to_use(training={"optimizer": {"name": "adam"}})):
        assert resuming.choose(tmp_path / "step-7", use) == tmp_path / "step-7"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"name": "mlp"}}, "is of the model linear, and the job has mlp"),
        ({"dataset": {"name": "diabetes"}}, r"was trained on 8x8x1 with 10 classes \(classification\), and the job's"),
    ],
)
def test_it_refuses_one_that_is_put_to_use_on_what_it_does_not_fit(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    [checkpoint] = written(tmp_path, 7)
    with pytest.raises(SpecInvalid, match=words):
        resuming.choose(checkpoint, put_to_use(**changes))
