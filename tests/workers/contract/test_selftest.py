"""The cases of the self-test, and the table of their results."""

from __future__ import annotations

import pytest

from tests.seed import SEED_SPEC
from workers.contract import catalog, matrix
from workers.contract.fitting import check
from workers.contract.inventory import SelfTest
from workers.contract.selftest import (
    Case,
    case_of,
    cases,
    cases_of,
    is_complete,
    nearest,
    reference_of,
    refusal,
    spec_of,
    verdict,
)
from workers.contract.spec import parse

FLOAT16 = Case("mirrored", "sum", "float16", True)


def result(**changes: object) -> SelfTest:
    return SelfTest.model_validate({"key": "tensorflow 1, cpu", **changes})


def test_it_tries_each_strategy_of_the_catalog_with_each_choice_once() -> None:
    assert len({case.name for case in cases()}) == len(cases()) == len(catalog.entries("strategy")) * 3 * 3 * 2
    assert FLOAT16.name == "mirrored/sum/float16/xla"
    assert FLOAT16 in cases_of("mirrored")


@pytest.mark.parametrize("case", [case for case in cases() if not refusal(case)], ids=lambda case: case.name)
def test_it_is_a_job_as_any_other_with_a_yardstick_of_the_same_steps(case: Case) -> None:
    spec = spec_of(case)
    reference = reference_of(spec)
    assert case_of(spec) == case
    assert check(spec) == check(reference) == []
    assert case_of(reference) == Case("one_device", case.aggregation, "none", False)
    assert reference.samples_per_step == spec.samples_per_step
    assert reference.model == spec.model
    assert reference.peak_learning_rate == spec.peak_learning_rate


def test_it_does_not_try_what_the_contract_refuses_in_words() -> None:
    refused = Case("parameter_server", "local", "none", False)
    assert "these workers never wait for one another" in refusal(refused)
    assert "weights live on another device" in refusal(Case("central_storage", "mean", "none", True))
    assert verdict(refused, result()) == ("refused", refusal(refused))


def test_it_finds_the_case_of_a_job() -> None:
    assert case_of(parse(SEED_SPEC)) == Case("multi_worker_mirrored", "mean", "none", False)


def test_it_tells_what_became_of_a_case() -> None:
    told = result(passed=["mirrored/mean/none/plain"], failures={FLOAT16.name: "Boom."}, unavailable={"tpu": "No TPU."})
    assert verdict(FLOAT16, told) == ("failed", "Boom.")
    assert verdict(Case("mirrored", "mean", "none", False), told) == ("ok", "")
    assert verdict(Case("mirrored", "mean", "none", True), told) == ("untried", "")
    assert verdict(Case("tpu", "mean", "none", True), told) == ("absent", "No TPU.")


def test_it_is_complete_when_nothing_is_left_to_try() -> None:
    tried = [case.name for case in cases() if case.strategy != "tpu"]
    told = result(passed=tried[1:], failures={tried[0]: "Boom."}, unavailable={"tpu": "No TPU."})
    assert is_complete(told)
    assert not is_complete(told.model_copy(update={"unavailable": {}}))
    assert not is_complete(result())


def test_it_blames_the_smallest_choice_that_is_known_to_make_the_difference() -> None:
    assert nearest(FLOAT16, {"mirrored/sum/float16/plain", "mirrored/sum/none/xla"})[0] == "training.jit"
    assert nearest(FLOAT16, {"mirrored/sum/none/xla"})[0] == "training.mixed_precision"
    assert nearest(FLOAT16, {"mirrored/mean/float16/xla"})[0] == "training.aggregation.method"
    assert nearest(FLOAT16, set())[0] == "strategy.name"


def test_it_shows_a_row_for_each_strategy_and_each_sentence_once() -> None:
    failures = {case.name: "Boom." for case in cases_of("mirrored") if case.jit}
    table = matrix.text(result(failures=failures, unavailable={"tpu": "There is no TPU."}))
    for strategy in catalog.entries("strategy"):
        assert any(line.startswith(strategy) for line in table.splitlines())
    assert table.count("Boom.") == table.count("There is no TPU.") == 1
    [row] = [line for line in table.splitlines() if line.startswith("mirrored")]
    assert row.count("FAILED [") == 9 and row.count("?") == 9


def test_it_is_a_table_in_markdown() -> None:
    lines = matrix.markdown(result(passed=["one_device/mean/none/plain"])).splitlines()
    assert lines[0].startswith("| strategy | mean none | mean float16 | mean bfloat16 | sum none |")
    assert {line.count("|") for line in lines[: 2 + len(catalog.entries("strategy"))]} == {11}
    assert "| one_device | ✓ · | · · |" in "\n".join(lines)
