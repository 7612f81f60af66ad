"""The self-test's runner: what fails is blamed alone, what was found is kept; and a few real cases."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_for
from tests.workers.training.conftest import ROOT
from workers.contract.inventory import SelfTest
from workers.contract.selftest import cases, cases_of
from workers.training.selftest import SelfTester

ONE = "one_device/mean"
NAMES = [case.name for case in cases_of("one_device") if case.aggregation == "mean"]
THIRD = NAMES[2]


class Trying:
    """Runs of the self-test whose trials end as told."""

    def __init__(self, folder: Path) -> None:
        self.results = folder / "results.json"
        self.log = folder / "begun"

    def start(self, behaviour: dict[str, str], *more: str, key: str = "k") -> subprocess.Popen[bytes]:
        self.log.unlink(missing_ok=True)
        command = [sys.executable, "-m", "workers.training.selftest", str(self.results), "--key", key, *more]
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TF_TRYING": json.dumps(behaviour),
            "TF_TRYING_BEGUN": str(self.log),
        }
        return subprocess.Popen([*command, "--engine", "tests.workers.training.trying"], cwd=ROOT, env=env)

    def run(self, behaviour: dict[str, str], *more: str, key: str = "k") -> SelfTest:
        assert self.wait(self.start(behaviour, *(more or ("--only", ONE)), key=key)) == 0
        return self.found

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(120)
        finally:
            process.terminate()

    @property
    def found(self) -> SelfTest:
        return SelfTest.model_validate_json(self.results.read_bytes())

    @property
    def begun(self) -> list[str]:
        """Cases in the order in which they began; references aside."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if "/" in line]


@pytest.fixture
def trying(tmp_path: Path) -> Trying:
    return Trying(tmp_path)


@pytest.mark.parametrize(("what", "words"), [("crash", "worker-0 was ended by SIGSEGV"), ("fail", "fail")])
def test_it_blames_the_case_that_was_under_way_and_tries_the_rest(trying: Trying, what: str, words: str) -> None:
    found = trying.run({THIRD: what})
    assert found.failures == {THIRD: words}
    assert set(found.passed) == set(NAMES) - {THIRD}
    assert not found.complete


def test_it_gives_up_a_case_that_hangs(trying: Trying) -> None:
    found = trying.run({THIRD: "hang"}, "--only", ONE, "--seconds", "3")
    assert found.failures == {THIRD: "It did not end within 3 s."}
    assert set(found.passed) == set(NAMES) - {THIRD}


def test_it_believes_a_failure_only_when_nothing_ran_before_it_in_the_process(trying: Trying) -> None:
    found = trying.run({THIRD: "fail after others"})
    assert found.failures == {}
    assert trying.begun == [*NAMES[:3], *NAMES[2:]]


def test_it_goes_on_from_what_was_found_with_the_same_key_only(trying: Trying) -> None:
    trying.run({}, "--only", f"{ONE}/none")
    trying.run({})
    assert trying.begun == NAMES[2:]
    assert set(trying.found.passed) == set(NAMES)
    assert trying.run({}, key="another").key == "another"
    assert trying.begun == NAMES


def test_it_keeps_what_it_found_when_it_is_interrupted(trying: Trying) -> None:
    process = trying.start({THIRD: "hang"}, "--only", ONE)
    try:
        wait_for(lambda: THIRD in trying.begun, seconds=120, what="the third case")
        wait_for(lambda: trying.results.exists() and len(trying.found.passed) == 2, seconds=60, what="two results")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130
    finally:
        process.kill()
    assert trying.found.passed == tuple(NAMES[:2])
    assert trying.found.failures == {}
    assert not list(trying.results.parent.glob("*.work"))


def test_it_tries_several_processes_as_one(trying: Trying) -> None:
    name = "multi_worker_mirrored/mean/none/plain"
    found = trying.run({name: "fail"}, "--only", "multi_worker_mirrored/mean/none")
    assert found.failures == {name: "fail"}
    assert found.passed == ("multi_worker_mirrored/mean/none/xla",)


def test_it_says_that_there_is_no_tpu(trying: Trying) -> None:
    found = trying.run({}, "--only", "tpu")
    assert "needs a TPU, and this machine has none" in found.unavailable["tpu"]
    assert trying.begun == []


def test_it_is_alone(trying: Trying) -> None:
    with trying.results.with_suffix(".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert trying.wait(trying.start({}, "--only", ONE)) == 1
    assert trying.begun == []


def test_it_refuses_to_compare_with_a_reference_that_fails(trying: Trying) -> None:
    process = trying.start({"mean-16-normalized": "crash"}, "--only", ONE)
    assert trying.wait(process) == 1
    assert not trying.results.exists()


@pytest.mark.tensorflow
@pytest.mark.timeout(600)
def test_it_passes_what_equals_one_device_and_finds_a_strategy_that_trains_wrongly(tmp_path: Path) -> None:
    right, wrong = "one_device/mean/none/plain", "mirrored/mean/none/plain"
    tester = SelfTester(tmp_path / "results.json", "k", engine="tests.workers.training.unsummed")
    tester.run([case for case in cases() if case.name in (right, wrong)])
    assert tester.results.passed == (right,)
    assert tester.results.failures.keys() == {wrong}
    assert "away from those of one device" in tester.results.failures[wrong]
