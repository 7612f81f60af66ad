"""The menu: what each plugin says, lays out and refuses, without TensorFlow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.workers.training.conftest import ROOT, seed_with
from workers.contract import catalog
from workers.contract.data import DatasetInfo
from workers.contract.problems import SpecInvalid
from workers.contract.spec import parse
from workers.training.here import place_here, tpu_here

PROBE = """
import json, sys
from workers.contract import catalog
listed = {
    kind: {name: entry.options.model_json_schema() for name, entry in catalog.entries(kind).items()}
    for kind in catalog.FOLDERS
}
heavy = {"tensorflow", "keras", "sklearn", "numpy"} & set(sys.modules)
assert not heavy, heavy
print(json.dumps(listed))
"""


@pytest.fixture(scope="module")
def listed() -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return answer


def refused(**changes: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(SpecInvalid) as caught:
        parse(seed_with(**changes))
    return {problem.path: str(problem) for problem in caught.value.problems}


def test_it_lists_everything_without_importing_tensorflow(listed: dict[str, dict[str, Any]]) -> None:
    assert set(listed["strategy"]) >= {"one_device", "mirrored", "multi_worker_mirrored", "central_storage", "tpu"}
    assert set(listed["dataset"]) >= {"digits", "mnist", "fashion_mnist", "synthetic_images"}
    assert set(listed["model"]) >= {"linear", "mlp", "cnn", "resnet"}


def test_it_describes_every_option(listed: dict[str, dict[str, Any]]) -> None:
    for plugins in listed.values():
        for name, schema in plugins.items():
            for field, described in schema["properties"].items():
                assert described.get("title"), f"{name}.{field}"
                assert described.get("description"), f"{name}.{field}"


def test_it_has_the_defaults_of_the_seed_example() -> None:
    entry = catalog.find("model", "mlp")
    assert entry.parse({}).model_dump() == {"units": (256, 128), "dropout": (0.4, 0.3), "activation": "relu"}


def test_it_refuses_dropout_of_another_length_than_units() -> None:
    problems = refused(model={"name": "mlp", "options": {"units": [10, 10, 10], "dropout": [0.4, 0.3]}})
    assert "has 2 values and units 3" in problems["model.options.dropout"]


@pytest.mark.parametrize("value", [0, 65, True, "two", [], [1, 1], [-1], [0.5], None])
def test_it_refuses_devices_that_are_neither_count_nor_indexes(value: Any) -> None:
    assert list(refused(strategy={"name": "mirrored", "options": {"devices": value}})) == ["strategy.options.devices"]


def test_it_lays_out_a_replica_for_each_part_of_a_split_device() -> None:
    layout = parse(seed_with(strategy={"name": "mirrored", "options": {"devices": [0, 3], "split": 2}})).layout
    assert layout.replicas == 4
    assert layout.processes[0].indexes == (0, 3)
    assert not layout.clustered


def test_it_lays_out_a_process_for_each_worker() -> None:
    strategy = {"name": "multi_worker_mirrored", "options": {"workers": 4, "devices_per_worker": 2}}
    layout = parse(seed_with(strategy=strategy)).layout
    assert [process.name for process in layout.processes] == ["worker-0", "worker-1", "worker-2", "worker-3"]
    assert layout.replicas == 8


@pytest.mark.parametrize(
    ("name", "options", "path"),
    [
        ("mirrored", {"device_type": "cpu", "cross_device_ops": "nccl"}, "strategy.options.cross_device_ops"),
        ("mirrored", {"split": 2, "cross_device_ops": "nccl"}, "strategy.options.cross_device_ops"),
        ("multi_worker_mirrored", {"device_type": "cpu", "communication": "nccl"}, "strategy.options.communication"),
        (
            "multi_worker_mirrored",
            {"device_type": "cpu", "devices_per_worker": 2},
            "strategy.options.devices_per_worker",
        ),
        ("mirrored", {"devices": 1, "cross_device_ops": "hierarchical_copy"}, "strategy.options.cross_device_ops"),
        ("mirrored", {"devices": 3, "cross_device_ops": "hierarchical_copy"}, "strategy.options.cross_device_ops"),
        ("mirrored", {"bytes_per_pack": 0}, "strategy.options.bytes_per_pack"),
        ("multi_worker_mirrored", {"workers": 1, "timeout_seconds": 9}, "strategy.options.timeout_seconds"),
        ("multi_worker_mirrored", {"timeout_seconds": 0}, "strategy.options.timeout_seconds"),
    ],
)
def test_it_refuses_what_a_strategy_cannot_honour(name: str, options: dict[str, Any], path: str) -> None:
    assert path in refused(strategy={"name": name, "options": options})


@pytest.mark.parametrize("devices", [1, 2])
def test_it_refuses_to_compile_layers_that_talk_over_replicas(devices: int) -> None:
    model = {"name": "cnn", "options": {"batch_norm": True}}
    job = {"model": model, "strategy": {"name": "mirrored", "options": {"devices": devices}}, "training": {"jit": True}}
    if devices == 1:
        assert parse(seed_with(**job)).training.jit
    else:
        assert "over 2 replicas" in refused(**job)["training.jit"]


def test_it_counts_the_weights_of_batch_normalization() -> None:
    entry = catalog.find("model", "cnn")
    plain, normalized = (
        entry.module.count_parameters(
            DatasetInfo(shape=(8, 8, 1), classes=10, samples=1), entry.parse({"filters": [4, 8], "batch_norm": norm})
        )
        for norm in (False, True)
    )
    assert normalized - plain == 4 * (4 + 8)


def test_it_lays_out_central_storage_in_one_process() -> None:
    layout = parse(seed_with(strategy={"name": "central_storage", "options": {"devices": 4}})).layout
    assert (layout.replicas, len(layout.processes)) == (4, 1)


def test_it_lays_out_a_replica_for_each_core_of_a_tpu() -> None:
    layout = parse(seed_with(strategy={"name": "tpu", "options": {"cores": 4}})).layout
    assert (layout.processes[0].kind, layout.replicas) == ("tpu", 4)


@pytest.mark.parametrize("address", ["", "a b", "$(reboot)"])
def test_it_refuses_an_address_that_is_none(address: str) -> None:
    options = {"address": address}
    assert list(refused(strategy={"name": "tpu", "options": options})) == ["strategy.options.address"]


@pytest.mark.skipif(tpu_here(), reason="this machine has a TPU")
def test_it_says_by_hand_that_there_is_no_tpu() -> None:
    with pytest.raises(SpecInvalid, match="needs a TPU, and this machine has none"):
        place_here(parse(seed_with(strategy={"name": "tpu"})))


def test_a_pod_slice_is_driven_by_its_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tpu = catalog.find("strategy", "tpu")
    alone, whole = (tpu.parse(given) for given in ({}, {"address": "slice-1", "cores": 32}))
    assert tpu.module.environment(alone) == {}
    assert tpu.module.environment(whole) == {"TPU_LOAD_LIBRARY": "0"}
    assert tpu.module.layout(whole).replicas == 32
    assert tpu.module.check_here(alone) == []
    monkeypatch.setenv("LOCKSTEP_TPU_CORES", "32")
    [problem] = tpu.module.check_here(alone)
    assert (
        str(problem) == "address: is the TPU of one host, and this one is part of a pod slice (got local). "
        "Give the name of the slice"
    )
    assert tpu.module.check_here(whole) == []


def test_it_refuses_pictures_too_small_for_the_network() -> None:
    problems = refused(model={"name": "cnn", "options": {"filters": [8, 8, 8, 8]}})
    assert "Give at most 3 values" in problems["model.options.filters"]


def test_it_refuses_a_network_for_pictures_on_anything_else() -> None:
    entry = catalog.find("model", "cnn")
    [problem] = entry.module.check(entry.parse({}), DatasetInfo(shape=(30,), classes=2, samples=10))
    assert problem.path == "name"


def test_it_refuses_synthetic_images_that_fit_no_memory() -> None:
    options = {"shape": [1024, 1024, 3], "samples": 1_000_000}
    problems = refused(dataset={"name": "synthetic_images", "options": options})
    assert "at most 317 fit" in problems["dataset.options.samples"]


def test_it_lists_every_problem_of_a_refused_spec_and_exits_with_2(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(json.dumps(seed_with(training={"epochs": 0, "global_batch": -1})))
    command = [sys.executable, "-m", "workers.training", str(spec), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "training.epochs" in done.stderr
    assert "training.global_batch" in done.stderr
    assert not (tmp_path / "out").exists()


def test_it_keeps_an_earlier_run(tmp_path: Path) -> None:
    spec, out = tmp_path / "spec.yaml", tmp_path / "out"
    out.mkdir()
    (out / "events.jsonl").write_text("precious")
    spec.write_text(json.dumps(seed_with()))
    command = [sys.executable, "-m", "workers.training", str(spec), "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
    assert (out / "events.jsonl").read_text() == "precious"


def test_it_says_in_a_sentence_that_the_folder_cannot_be_written(tmp_path: Path) -> None:
    spec, out = tmp_path / "spec.yaml", tmp_path / "out"
    spec.write_text(json.dumps(seed_with()))
    out.mkdir()
    (out / "events.jsonl").symlink_to("/proc/nowhere")  # refused even to root, as a read-only disk is
    command = [sys.executable, "-m", "workers.training", str(spec), "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (2, f"{out} cannot be written: No such file or directory\n")
