"""The job specification: both ways, and what it refuses in which words."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import JobSpec, parse, to_json


def problems(document: Any) -> dict[str, Problem]:
    with pytest.raises(SpecInvalid) as caught:
        parse(document)
    return {problem.path: problem for problem in caught.value.problems}


def with_value(spec: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(spec)
    *parents, last = path.split(".")
    node = changed
    for parent in parents:
        node = node.setdefault(parent, {})
    if value is KeyError:
        node.pop(last, None)
    else:
        node[last] = value
    return changed


def test_it_reads_the_documented_example_and_writes_it_back(seed_spec: dict[str, Any]) -> None:
    spec = parse(yaml.safe_dump(seed_spec))
    assert parse(spec.to_yaml()) == spec
    assert parse(to_json(spec)) == spec
    assert parse(spec.to_dict()) == spec
    assert spec.to_dict()["model"]["options"]["units"] == [256, 128]


def test_it_knows_the_arithmetic_of_a_run(seed_spec: dict[str, Any]) -> None:
    spec = parse(seed_spec)
    assert spec.layout.replicas == 2
    assert [process.name for process in spec.layout.processes] == ["worker-0", "worker-1"]
    assert spec.dataset_info.training_samples(0.2) == 1797 - 359
    assert spec.steps_per_epoch == (1797 - 359) // 128
    assert spec.total_steps == 10 * spec.steps_per_epoch


def test_it_scales_the_learning_rate_by_replicas_only_when_told(seed_spec: dict[str, Any]) -> None:
    assert parse(seed_spec).peak_learning_rate == pytest.approx(0.001)
    scaled = parse(with_value(seed_spec, "training.learning_rate_scaling", "linear"))
    assert scaled.peak_learning_rate == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("training.global_batch", 0, "at least 1"),
        ("training.global_batch", "many", "a whole number"),
        ("training.global_batch", 127, "cannot be shared evenly by 2 replicas"),
        ("training.global_batch", 4096, "larger than the 1438 training samples"),
        ("training.optimizer.learning_rate", -1, "greater than 0"),
        ("training.optimizer.learning_rate", float("nan"), "finite"),
        ("training.validation_split", 1.0, "less than 1"),
        ("training.steps_per_call", 0, "between 1 and 10,000"),
        ("training.seed", 2**31, "at most 2,147,483,647"),
        ("dataset.name", "digitz", "no dataset of this name"),
        ("model.name", "mlp2", "no model of this name"),
        ("strategy.name", "horovod", "no strategy of this name"),
        ("strategy.options.workers", 0, "at least 1"),
        ("name", "", "must not be empty"),
        ("version", "lockstep/v9", "not a version"),
        ("tags", ["with space"], ""),
    ],
)
def test_it_names_the_field_and_the_value(seed_spec: dict[str, Any], path: str, value: Any, said: str) -> None:
    found = problems(with_value(seed_spec, path, value))
    field = next(key for key in found if key.startswith(path))
    assert said in found[field].message
    assert found[field].value is not None


@pytest.mark.parametrize("path", ["name", "dataset", "model", "strategy", "training"])
def test_it_says_what_is_missing(seed_spec: dict[str, Any], path: str) -> None:
    assert problems(with_value(seed_spec, path, KeyError))[path].message == "is required"


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("training.global_batchs", "global_batch"),
        ("training.optimizer.learning_rat", "learning_rate"),
        ("strategy.options.worker", "workers"),
        ("datset", "dataset"),
    ],
)
def test_it_refuses_unknown_fields_and_guesses_what_was_meant(seed_spec: dict[str, Any], path: str, meant: str) -> None:
    problem = problems(with_value(seed_spec, path, 1))[path]
    assert problem.message == "is not a known field"
    assert meant in problem.remedy


def test_it_lists_the_known_plugins_for_an_unknown_one(seed_spec: dict[str, Any]) -> None:
    remedy = problems(with_value(seed_spec, "strategy.name", "horovod"))["strategy.name"].remedy
    assert "mirrored" in remedy
    assert "one_device" in remedy


def test_it_wants_either_epochs_or_steps(seed_spec: dict[str, Any]) -> None:
    assert "either epochs or steps" in problems(with_value(seed_spec, "training.steps", 10))["training"].message
    assert "either epochs or steps" in problems(with_value(seed_spec, "training.epochs", KeyError))["training"].message


def test_it_reports_every_problem_at_once(seed_spec: dict[str, Any]) -> None:
    broken = with_value(with_value(seed_spec, "model.name", "nope"), "strategy.options.workers", "two")
    assert set(problems(broken)) == {"model.name", "strategy.options.workers"}
    broken = with_value(broken, "training.seed", -1)
    assert set(problems(broken)) == {"training.seed", "model.name", "strategy.options.workers"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: [unclosed", "not valid YAML at line 1"),
        ("- a list", "mapping"),
        ("", "mapping"),
        ("!!python/object/apply:os.system ['true']", "not valid YAML"),
        ("x: " + "[" * 5000, "nested more than 32 deep"),
        ("a: &a [1]\nb: *a", "has an alias at line 2"),
        ("name: x\nname: y", "line 2.*name is given twice"),
        ("x: " + "9" * 5000, "cannot be read"),
        ("a" * 300_000, "longer than"),
        (b"\xff\xfe\x00", "UTF-8"),
    ],
)
def test_it_refuses_what_is_no_document(text: str | bytes, said: str) -> None:
    with pytest.raises(SpecInvalid, match=said):
        parse(text)


def test_it_reads_numbers_as_people_write_them_in_yaml(seed_spec: dict[str, Any]) -> None:
    text = json.dumps(seed_spec).replace('"learning_rate": 0.001', '"learning_rate": "1e-3"')
    assert parse(text).training.optimizer.learning_rate == pytest.approx(0.001)


def test_it_is_a_schema_that_can_be_published() -> None:
    assert JobSpec.model_json_schema()["additionalProperties"] is False
