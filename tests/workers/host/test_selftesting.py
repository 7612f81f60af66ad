"""The self-test in the background of a host: when it runs, what is kept of it, and what is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import RedisServer
from tests.workers.host.acknowledging import Receiver
from tests.workers.host.conftest import Host
from tests.workers.host.patience import wait_for
from workers.contract.inventory import Inventory, SelfTest
from workers.contract.selftest import cases
from workers.host import selftest
from workers.host.selftesting import SelfTesting, key, read, results_file
from workers.host.settings import HostSettings

Make = Callable[..., SelfTesting]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[SelfTesting] = []

    def one(**settings: object) -> SelfTesting:
        given = {"lockstep_selftest": "auto", "lockstep_selftest_quiet": 0.0, **settings}
        made.append(SelfTesting(HostSettings(lockstep_runs=tmp_path, **given)))  # type: ignore[arg-type]
        return made[-1]

    yield one
    for each in made:
        each.end()


def store(runs: Path, of: str = "", **changes: object) -> SelfTest:
    of = of or key()
    file = results_file(runs, of)
    file.parent.mkdir(parents=True, exist_ok=True)
    found = SelfTest.model_validate({"key": of, **changes})
    file.write_text(found.model_dump_json())
    return found


def everything() -> list[str]:
    return [case.name for case in cases()]


def test_it_makes_way_for_a_job_and_goes_on_after_it(make: Make) -> None:
    testing = make()
    testing.tend(busy=False)
    assert testing.pid is not None
    child = psutil.Process(testing.pid)
    wait_for(lambda: child.nice() == 19, what="the lowest priority")
    wait_for(child.children, what="the test's own processes")
    family = [child, *child.children(recursive=True)]
    testing.tend(busy=True)
    assert testing.pid is None
    wait_for(lambda: not any(alive(each) for each in family), what="all of them to be gone")
    testing.tend(busy=False)
    assert testing.pid is not None


def alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_it_waits_for_a_while_without_jobs(make: Make) -> None:
    testing = make(lockstep_selftest_quiet=600.0)
    testing.tend(busy=False)
    assert testing.pid is None


def test_it_does_nothing_where_it_is_off(make: Make) -> None:
    testing = make(lockstep_selftest="off")
    testing.tend(busy=False)
    assert testing.pid is None


def test_it_does_not_run_again_when_there_is_nothing_left_to_try(make: Make, tmp_path: Path) -> None:
    store(tmp_path, passed=everything())
    testing = make()
    testing.tend(busy=False)
    assert testing.pid is None


def test_it_tells_results_when_they_are_new_and_once_in_a_while(make: Make, tmp_path: Path) -> None:
    testing = make()
    assert testing.news() == SelfTest(key=key()), "so that what other versions showed is forgotten"
    first = store(tmp_path, passed=everything()[:1])
    assert testing.news() == first
    testing.told(None)
    assert testing.news() == first
    testing.told(first)
    assert testing.news() is None
    second = store(tmp_path, passed=everything()[:2])
    assert testing.news() == second


def test_it_forgets_results_of_other_versions(tmp_path: Path) -> None:
    store(tmp_path, of="tensorflow 1.0, cpu", passed=everything())
    assert read(results_file(tmp_path, key()), key()) is None
    assert read(results_file(tmp_path, "tensorflow 1.0, cpu"), key()) is None
    assert "tensorflow 2." in key() and key().endswith("cpu")


def test_it_survives_a_torn_file(make: Make, tmp_path: Path) -> None:
    store(tmp_path)
    results_file(tmp_path, key()).write_text('{"key": ')
    assert make().news() == SelfTest(key=key())


def test_the_host_tells_what_it_found(host: Host, redis_server: RedisServer) -> None:
    found = store(host.runs, passed=everything()[1:], failures={everything()[0]: "Boom."})
    with Receiver(redis_server.client()) as receiver:
        host.start("workers.host")

        def told() -> list[SelfTest]:
            hellos = [Inventory.model_validate_json(hello.inventory) for hello in receiver.hellos]
            return [hello.selftest for hello in hellos if hello.selftest is not None]

        wait_for(lambda: told() and len(receiver.hellos) > 2, seconds=60, what="hellos")
        assert told() == [found]


def test_it_prints_the_table_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path))
    assert selftest.main(["--show"]) == 2
    store(tmp_path, passed=everything()[1:], failures={everything()[0]: "Boom."})
    assert selftest.main(["--show"]) == 1
    assert "FAILED [1]" in capsys.readouterr().out
    store(tmp_path, passed=everything())
    assert selftest.main(["--show", "--markdown"]) == 0
    assert "| one_device | ✓ ✓ |" in capsys.readouterr().out
