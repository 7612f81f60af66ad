"""Model parallel: what is split and how, what it computes, which meshes are refused (see also test_exactness.py)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workers.training.conftest import run_script, seed_with
from workers.contract.problems import SpecInvalid
from workers.contract.spec import parse
from workers.training.here import place_here

pytestmark = pytest.mark.timeout(300)


def job(rows: int, columns: int, **changes: Any) -> dict[str, Any]:
    mesh = {"batch": rows, "model": columns}
    return seed_with(strategy={"name": "model_parallel", "options": {"mesh": mesh}}, **changes)


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(SpecInvalid) as refused:
        parse(document)
    return str(refused.value)


def test_it_shares_the_batch_by_the_rows_and_takes_all_devices() -> None:
    layout = parse(job(2, 4)).layout
    assert layout.replicas == 2
    assert [(shape.devices, shape.replicas) for shape in layout.processes] == [(8, 2)]


def test_it_is_placed_with_a_replica_on_each_row() -> None:
    spec = parse(job(2, 2))
    [process] = place_here(spec)
    assert (len(process.devices), process.replicas, process.shards) == (4, (0, 1), 2)


@pytest.mark.parametrize(
    ("columns", "model", "said"),
    [
        (
            3,
            {"name": "mlp", "options": {"units": [64], "dropout": [0]}},
            "model.options.units.0: 64 is not a multiple of 3 (got 3). Nearest that can: 2 or 4",
        ),
        (3, {"name": "linear"}, "the logits: neither 10 nor 64 is a multiple of 3 (got 3). Nearest that can: 2 or 4"),
        (
            7,
            {"name": "mlp", "options": {"units": [30, 12], "dropout": [0, 0]}},
            "model.options.units.0: neither 30 nor 64 is a multiple of 7 (got 7). Nearest that can: 6 or 10",
        ),
        (
            5,
            {"name": "cnn", "options": {"filters": [4, 9], "units": 12}},
            "model.options.filters.0: neither 4 nor 1 is a multiple of 5 (got 5). Nearest that can: 4",
        ),
    ],
)
def test_it_refuses_a_mesh_that_does_not_divide_a_weight(columns: int, model: dict[str, Any], said: str) -> None:
    expected = f"strategy.options.mesh.model: cannot split the weights of {said}"
    assert refusal(job(1, columns, model=model)) == expected


def test_it_splits_a_kernel_on_its_inputs_where_the_outputs_do_not_divide() -> None:
    assert parse(job(1, 4, model={"name": "linear"})).layout.replicas == 1


@pytest.mark.parametrize(("field", "value"), [("jit", True), ("mixed_precision", "float16")])
def test_it_refuses_what_dtensor_cannot_compile(field: str, value: Any) -> None:
    assert f"training.{field}: " in refusal(job(1, 2, training={field: value}))


def test_it_refuses_a_mesh_of_more_devices_than_a_host_has() -> None:
    assert "strategy.options.mesh.batch: makes a mesh of 128 devices" in refusal(job(32, 4))


def test_it_refuses_a_batch_that_the_rows_cannot_share() -> None:
    assert "training.global_batch: cannot be shared evenly by 3 replicas" in refusal(
        job(3, 2, training={"global_batch": 128})
    )


def over(processes: int, rows: int, columns: int) -> dict[str, Any]:
    mesh = {"batch": rows, "model": columns}
    return seed_with(
        strategy={"name": "model_parallel", "options": {"mesh": mesh, "processes": processes}},
        training={"global_batch": 120},
    )


@pytest.mark.parametrize(
    ("processes", "rows", "columns", "replicas"),
    [
        (2, 2, 2, [(0,), (1,)]),
        (2, 4, 1, [(0, 1), (2, 3)]),
        (2, 1, 2, [(0,), ()]),
        (4, 2, 4, [(0,), (), (1,), ()]),
    ],
)
def test_it_numbers_each_row_where_it_begins(
    processes: int, rows: int, columns: int, replicas: list[tuple[int, ...]]
) -> None:
    spec = parse(over(processes, rows, columns))
    assert spec.layout.replicas == rows
    placed = place_here(spec)
    assert [process.replicas for process in placed] == replicas
    assert [len(process.devices) for process in placed] == [rows * columns // processes] * processes


@pytest.mark.parametrize(
    ("processes", "rows", "columns", "nearest"), [(3, 2, 2, "2 or 4"), (3, 2, 3, "2 or 6"), (9, 2, 4, "8")]
)
def test_it_refuses_processes_that_cannot_share_the_mesh_evenly(
    processes: int, rows: int, columns: int, nearest: str
) -> None:
    said = f"strategy.options.processes: cannot share {rows} x {columns} devices in whole rows or equal parts of one"
    assert refusal(over(processes, rows, columns)).startswith(f"{said} (got {processes}). Nearest that can: {nearest}")


def test_it_refuses_processes_that_each_draw_their_own_batch() -> None:
    document = over(2, 2, 2)
    document["training"]["sharding"] = "off"
    assert "training.sharding: lets each worker draw examples of its own" in refusal(document)


def test_several_processes_hold_a_mesh_larger_than_a_host() -> None:
    assert parse(over(2, 2, 64)).layout.replicas == 2


@pytest.fixture(scope="module")
def mesh() -> dict[str, Any]:
    """A model of embedding, attention and dense layers on 2 x 2 devices, trained for some steps."""
    return run_script("mesh.py")


@pytest.mark.tensorflow
def test_it_trains_embeddings_and_attention_as_one_device_does(mesh: dict[str, Any]) -> None:
    assert mesh["distance"] < 1e-5


@pytest.fixture(scope="module")
def by_optimizer() -> dict[str, float]:
    """How far each model and optimizer ends on a mesh from where it ends on one device."""
    return run_script("mesh_optimizers.py")


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", ["rmsprop 2x2", "adamw 1x2"])
def test_it_trains_a_language_model_with_every_optimizer(case: str, by_optimizer: dict[str, float]) -> None:
    # The biases of keys have no gradient but rounding, and Adam makes steps of 1e-3 of what is not far below 1e-7.
    most = 1e-4 if case.startswith("adam") else 1e-6
    assert by_optimizer[f"transformer_lm {case}"] < most


@pytest.mark.tensorflow
@pytest.mark.parametrize("shape", ["1x2", "2x2"])
def test_it_trains_a_first_layer_that_is_split_on_its_inputs(shape: str, by_optimizer: dict[str, float]) -> None:
    assert by_optimizer[f"mlp rmsprop {shape}"] < 1e-6


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", ["joined rmsprop 1x2", "averaged rmsprop 2x2"])
def test_it_computes_on_whole_examples_between_layers(case: str, by_optimizer: dict[str, float]) -> None:
    assert by_optimizer[case] < 1e-5


@pytest.mark.tensorflow
def test_it_trains_embeddings_side_by_side_with_an_optimizer_that_keeps_squares(by_optimizer: dict[str, float]) -> None:
    assert by_optimizer["wide_and_deep adam 2x2"] < 1e-6


@pytest.mark.tensorflow
def test_it_splits_each_weight_by_its_layer(mesh: dict[str, Any]) -> None:
    whole, split = "unsharded", "model"
    assert mesh["axes"] == {
        "embedding/embeddings": [whole, split],
        "multi_head_attention/query/kernel": [whole, split, whole],
        "multi_head_attention/query/bias": [split, whole],
        "multi_head_attention/key/kernel": [whole, split, whole],
        "multi_head_attention/key/bias": [split, whole],
        "multi_head_attention/value/kernel": [whole, split, whole],
        "multi_head_attention/value/bias": [split, whole],
        "multi_head_attention/attention_output/kernel": [split, whole, whole],
        "multi_head_attention/attention_output/bias": [whole],
        "layer_normalization/gamma": [whole],
        "layer_normalization/beta": [whole],
        "dense/kernel": [whole, split],
        "dense/bias": [split],
        "dense_1/kernel": [whole, split],
        "dense_1/bias": [split],
    }


@pytest.mark.tensorflow
def test_it_can_be_told_beforehand_which_sizes_must_divide(mesh: dict[str, Any]) -> None:
    assert mesh["kernels"]["all"] == {
        "embedding/embeddings": [16, 32],
        "multi_head_attention/query": [4],
        "dense": [24, 16],
        "dense_1": [10, 24],
    }
    assert mesh["kernels"]["frozen"] == {}


@pytest.mark.tensorflow
def test_it_says_how_what_split_layers_take_and_give_is_split(mesh: dict[str, Any]) -> None:
    last, heads = -1, 2
    assert mesh["ends"] == {
        "embedding": [[None], [last, None]],
        "query": [[None], [heads]],
        "key": [[None], [heads]],
        "value": [[None], [heads]],
        "attention_output": [[heads], [None]],
        "dense": [[None], [last, None]],
        "dense_1": [[None], [last]],
    }


@pytest.mark.tensorflow
def test_it_splits_nothing_of_a_layer_that_is_not_trained(mesh: dict[str, Any]) -> None:
    assert mesh["frozen"] == {}


@pytest.mark.tensorflow
def test_it_keeps_slots_beside_their_weights_and_half_of_all_bytes_on_a_device(mesh: dict[str, Any]) -> None:
    assert mesh["slots"]
    assert len(set(mesh["bytes"])) == 1
    assert mesh["whole"] / 2 < mesh["bytes"][0] < 0.55 * mesh["whole"]


@pytest.mark.tensorflow
def test_it_tells_each_device_with_its_bytes(mesh: dict[str, Any]) -> None:
    told = [(one["replica"], one["device"], one["weight_bytes"]) for one in mesh["replicas"]]
    size = mesh["bytes"][0]
    assert told == [(0, "cpu:0", size), (0, "cpu:1", size), (1, "cpu:2", size), (1, "cpu:3", size)]


@pytest.mark.tensorflow
def test_it_reads_a_split_weight_as_it_was_assigned(mesh: dict[str, Any]) -> None:
    assert mesh["read"]


@pytest.mark.tensorflow
def test_dropout_is_of_the_whole_batch_and_the_same_over_the_parts_of_a_model(mesh: dict[str, Any]) -> None:
    assert mesh["dropout"] == {"rows": False, "columns": True}


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", ["constants", "table", "own class"])
def test_it_computes_layers_that_no_rule_is_for(case: str, mesh: dict[str, Any]) -> None:
    """Tensors that a layer, or a call, holds besides variables; a subclass of a layer that computes in parts."""
    found, wanted = mesh[case]
    assert found == pytest.approx(wanted, rel=1e-6)


@pytest.mark.tensorflow
def test_it_names_an_operation_that_dtensor_does_not_know(mesh: dict[str, Any]) -> None:
    said = "A mesh cannot compute the operation Roll, for which DTensor has no layout: use mirrored or multi_worker_"
    assert mesh["no layout"].startswith(said)


@pytest.mark.tensorflow
def test_it_names_a_weight_that_no_plugin_told_of(mesh: dict[str, Any]) -> None:
    said = (
        "/kernel of (5, 7): neither 7 nor 5 is a multiple of 2; choose another mesh.model, or change the model's sizes."
    )
    assert mesh["refused"]["split"].startswith("The mesh cannot split odd/")
    assert mesh["refused"]["split"].endswith(said)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("layer", "named"),
    [
        ("loop", "(GRU): DTensor cannot compile its loop. Make the layer with unroll=True, or"),
        ("dilated", "wide (Conv2D): DTensor cannot compile a dilated convolution."),
        ("depthwise", "cheap (SeparableConv2D): DTensor has no layout"),
        ("operation", "flip (Flip): DTensor has no layout for what it computes."),
        ("augmentation", "mirror (RandomFlip): DTensor has no layout for what it computes in training."),
    ],
)
def test_it_names_a_layer_that_dtensor_cannot_compile(layer: str, named: str, mesh: dict[str, Any]) -> None:
    assert named in mesh["refused"][layer]
    assert mesh["refused"][layer].endswith("se mirrored or multi_worker_mirrored.")


@pytest.mark.tensorflow
def test_it_takes_a_loop_that_is_written_out(mesh: dict[str, Any]) -> None:
    assert mesh["refused"]["unrolled"] is None


@pytest.mark.tensorflow
def test_it_computes_what_it_cannot_train(mesh: dict[str, Any]) -> None:
    assert mesh["refused"]["depthwise, computed"] is mesh["refused"]["augmentation, computed"] is None
