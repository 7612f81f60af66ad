"""The reporter's promises, the pace of device calls, and what becomes of an error."""

from __future__ import annotations

import errno
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.waiting import wait_for
from tests.workers.training.conftest import seed_with
from workers.contract.assignment import Place
from workers.contract.events import Points, parse_event
from workers.contract.layout import ProcessAssignment
from workers.contract.spec import parse
from workers.training.failures import NotFiniteError, explain
from workers.training.here import place_here
from workers.training.optimizers import learning_rate_at
from workers.training.pace import TARGET_SECONDS, Pace
from workers.training.reporter import CallReport, Reporter, Values


def points(file: Path) -> list[Points]:
    found = [parse_event(line) for line in file.read_bytes().splitlines()]
    return [event for event in found if isinstance(event, Points)]


def call(first: int, count: int = 3) -> CallReport:
    losses = np.arange(first, first + count, dtype=np.float32)
    return CallReport(first, 1, time.time(), time.time() + 0.01, {"loss": losses}, {"throughput": 0.5})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events" / "worker-0.jsonl"


def test_it_tells_the_first_call_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.training.reporter.FLUSH_SECONDS", 3600)
    reporter = Reporter(file, "worker-0")
    reporter.write(call(1))
    wait_for(lambda: points(file), seconds=5, what="the first point")
    reporter.close()


def test_it_gathers_later_calls_and_tells_them_by_itself(file: Path) -> None:
    reporter = Reporter(file, "worker-0")
    for first in (1, 4, 7):
        reporter.write(call(first))
    wait_for(lambda: len(points(file)) == 2, seconds=5, what="the later points")
    assert [series.steps for series in points(file)[1].series] == [[4, 5, 6, 7, 8, 9], [6, 9]]
    reporter.close()


def test_it_tells_whose_each_step_was(file: Path) -> None:
    reporter = Reporter(file, "chief-0")
    trained = {"loss": np.asarray([3, 2, 1], np.float32), "accuracy": np.asarray([0, 1, 0.5], np.float32)}
    reporter.write(CallReport(5, 1, 10.0, 13.0, trained, {}, replicas=(1, 0, 1)))
    reporter.close()
    [told] = points(file)
    found = {(series.name, series.replica): (series.steps, series.times, series.values) for series in told.series}
    assert found == {
        ("loss", None): ([5, 6, 7], [11, 12, 13], [3, 2, 1]),
        ("accuracy", None): ([5, 6, 7], [11, 12, 13], [0, 1, 0.5]),
        ("loss", 1): ([5, 7], [11, 13], [3, 1]),
        ("loss", 0): ([6], [12], [2]),
    }


def test_it_keeps_the_order_of_points_and_other_events(file: Path) -> None:
    reporter = Reporter(file, "worker-0")
    reporter.write(call(1))
    reporter.write(call(4))
    reporter.phase("saving")
    reporter.close()
    kinds = [parse_event(line).type for line in file.read_bytes().splitlines()]
    assert kinds == ["points", "points", "phase"]


def test_it_loses_nothing_from_many_threads(file: Path) -> None:
    reporter = Reporter(file, "worker-0")

    def tell(replica: int) -> None:
        for _ in range(500):
            reporter.write(Values(None, None, time.time(), {"utilization": float(replica)}, replica))

    threads = [threading.Thread(target=tell, args=(replica,)) for replica in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reporter.close()
    told = [value for event in points(file) for series in event.series for value in series.values]
    assert sorted(told) == sorted(float(replica) for replica in range(4) for _ in range(500))


def test_it_keeps_values_that_are_no_numbers(file: Path) -> None:
    reporter = Reporter(file, "worker-0")
    reporter.write(CallReport(1, 1, 0.0, 1.0, {"loss": np.array([np.nan, np.inf], np.float32)}, {}))
    reporter.close()
    [series] = points(file)[0].series
    assert np.isnan(series.values[0])
    assert series.values[1] == np.inf
    assert series.times == [0.5, 1.0]


def test_it_raises_when_the_disk_takes_no_more(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    reporter = Reporter(tmp_path / "full", "worker-0")
    reporter.write(call(1))
    with pytest.raises(OSError, match="No space left"):
        reporter.flush()
    with pytest.raises(OSError, match="No space left"):
        reporter.write(call(4))
    reporter.close()


def test_it_costs_the_training_thread_next_to_nothing(file: Path) -> None:
    reporter = Reporter(file, "worker-0")
    calls = [call(first, 20) for first in range(1, 20_000, 20)]
    before = time.thread_time()
    for one in calls:
        reporter.write(one)
    spent = time.thread_time() - before
    reporter.close()
    assert sum(len(event.series[0].steps) for event in points(file)) == 20_000
    assert spent / len(calls) < 100e-6


def test_it_starts_with_single_steps_and_aims_at_the_target() -> None:
    pace = Pace("auto")
    taken = [pace.steps]
    for _ in range(6):
        pace.learn(0.001)
        taken.append(pace.steps)
    assert taken[0] == 1
    assert taken[1] == 8
    assert taken[-1] == int(TARGET_SECONDS / 0.001)
    pace.learn(10.0)
    assert pace.steps == taken[-1] // 2
    for _ in range(10):
        pace.learn(10.0)
    assert pace.steps == 1


def test_it_keeps_a_chosen_number_of_steps() -> None:
    pace = Pace(7)
    pace.learn(0.001)
    assert pace.steps == 7


def test_it_warms_the_learning_rate_up_in_equal_parts() -> None:
    spec = parse(seed_with(training={"warmup_steps": 10, "learning_rate_scaling": "linear"}))
    assert [round(learning_rate_at(spec, step), 6) for step in (1, 5, 10, 99)] == [0.0002, 0.001, 0.002, 0.002]


@pytest.fixture
def place() -> Place:
    spec = parse(seed_with())
    processes: tuple[ProcessAssignment, ...] = place_here(spec)
    return Place(spec=spec, process=processes[1], processes=processes, run="/nowhere")


def test_it_explains_errors_in_one_sentence(place: Place) -> None:
    assert explain(NotFiniteError(1234, float("nan")), place)[1].startswith("The loss became NaN at step 1,234;")
    reason, cause = explain(MemoryError(), place)
    assert reason == "memory"
    assert "worker-1 with 64 samples per replica; use a global batch smaller than 128" in cause
    assert explain(ValueError("first\nsecond"), place) == ("error", "ValueError: first")


def test_it_says_what_tensorflow_said_and_not_where(place: Place) -> None:
    class UnavailableError(Exception):
        """Named as TensorFlow's, whose message has this shape."""

    error = UnavailableError(
        "Graph execution error:\n\nDetected at node while/CollectiveReduceV2 defined at (most recent call last):\n"
        '  File "<frozen runpy>", line 88, in _run_code\n\nfailed to connect to all addresses.\n\t [[{{node while}}]]'
    )
    cause = "worker-1 lost contact with another process of the job (failed to connect to all addresses)."
    assert explain(error, place) == ("peer", cause)


def test_it_names_the_process_that_stopped_answering(place: Place) -> None:
    class UnavailableError(Exception):
        """As TensorFlow's coordination service words it."""

    error = UnavailableError(
        "Collective ops is aborted by: Error reported from /job:worker/task:0: The following tasks are unhealthy "
        "(stopped sending heartbeats):\n/job:worker/replica:0/task:0\nThe tasks have crashed."
    )
    reason, cause = explain(error, place)
    assert reason == "peer"
    assert cause.startswith("worker-1 lost contact with worker-0, which had stopped answering (")


def test_it_says_which_port_was_taken(place: Place) -> None:
    _, cause = explain(RuntimeError("Could not start gRPC server"), place)
    assert cause.startswith(f"worker-1 could not listen on port {place.process.port}: another program of the host")


def test_it_says_whose_disk_is_full(place: Place) -> None:
    _, cause = explain(OSError(errno.ENOSPC, "No space left on device"), place)
    assert cause == f"worker-1 found no space left on the disk of {place.run}: free some, or set LOCKSTEP_RUNS."


def test_it_places_workers_on_slots_of_their_own(place: Place) -> None:
    assert [(p.name, p.kind, p.devices, p.replicas) for p in place.processes] == [
        ("worker-0", "cpu", (0,), (0,)),
        ("worker-1", "cpu", (1,), (1,)),
    ]
    assert not place.chief
