"""Parameter servers: what is refused, who there is, and that training outlives a worker but nobody else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.waiting import wait_for
from tests.workers.file_corpus import table_rows, write_table
from tests.workers.training.conftest import ByHand, seed_with
from tests.workers.training.test_engine import engine_processes
from workers.contract.problems import SpecInvalid
from workers.contract.spec import parse

Start = Callable[..., ByHand]


def asynchronous(training: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return seed_with(strategy={"name": "parameter_server", "options": options}, training=training or {})


@pytest.mark.parametrize(
    ("training", "path", "remedy"),
    [
        ({"jit": True}, "training.jit", "Switch it off"),
        ({"mixed_precision": "float16"}, "training.mixed_precision", "Use bfloat16"),
        ({"learning_rate_scaling": "linear"}, "training.learning_rate_scaling", "Use none"),
        ({"aggregation": {"method": "local", "micro_batches": 2}}, "training.aggregation.method", "Use mean or sum"),
        ({"global_batch": 127}, "training.global_batch", "Nearest that can: 126 or 128"),
    ],
)
def test_it_refuses_in_words(training: dict[str, Any], path: str, remedy: str) -> None:
    with pytest.raises(SpecInvalid) as refused:
        parse(asynchronous(training))
    [problem] = refused.value.problems
    assert problem.path == path
    assert problem.remedy.startswith(remedy)


def test_it_needs_devices_for_the_workers_alone() -> None:
    layout = parse(asynchronous(workers=2, parameter_servers=2)).layout
    assert [process.name for process in layout.processes] == ["chief-0", "worker-0", "worker-1", "ps-0", "ps-1"]
    assert [process.devices for process in layout.processes] == [0, 1, 1, 0, 0]
    assert [process.essential for process in layout.processes] == [True, False, False, True, True]
    assert layout.replicas == 2


def test_it_counts_steps_over_all_workers() -> None:
    spec = parse(asynchronous(workers=2))
    assert (spec.samples_per_step, spec.steps_per_epoch, spec.total_steps) == (64, 22, 220)
    assert parse(asynchronous(workers=1)).total_steps == 110


def test_it_cannot_spare_its_only_worker() -> None:
    assert all(process.essential for process in parse(asynchronous(workers=1)).layout.processes)


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> ByHand:
    run = ByHand(asynchronous(workers=2), tmp_path_factory.mktemp("asynchronous"))
    assert run.finish() == 0, run.stderr
    return run


@pytest.mark.tensorflow
def test_it_learns_the_digits_with_two_workers(two_workers: ByHand) -> None:
    finished = next(event for event in two_workers.events if event.type == "finished")
    assert finished.step == 220
    assert finished.metrics["val_accuracy"] > 0.9


@pytest.mark.tensorflow
def test_it_tells_the_loss_of_every_step_and_whose_it_was(two_workers: ByHand) -> None:
    losses = two_workers.series("loss")
    assert list(losses) == list(range(1, 221))
    first, second = two_workers.series("loss", 0), two_workers.series("loss", 1)
    assert first | second == losses
    assert min(len(first), len(second)) > 22
    assert max(two_workers.series("worker_steps", 1).values()) == len(second)


@pytest.mark.tensorflow
def test_it_gauges_the_workers_along_the_steps(two_workers: ByHand) -> None:
    for replica in (0, 1):
        gauged = two_workers.series("utilization", replica)
        assert all(0 <= value <= 100 for value in gauged.values())
        assert max(gauged) > 110
    told = [event for event in two_workers.events if event.type == "points"]
    assert all(event.epoch == max(1, -(-event.step // 22)) for event in told if event.process != "chief-0")


@pytest.mark.tensorflow
def test_it_goes_on_without_a_worker_but_not_without_all_and_loses_no_example(by_hand: Start, tmp_path: Path) -> None:
    # Weights that stand still and batches that are the same in each epoch: so are the losses, in any order.
    still = {"shuffle": False, "optimizer": {"name": "sgd", "learning_rate": 1e-30}, "global_batch": 64}
    spec = asynchronous({"epochs": 100_000, **still}, workers=2)
    file = write_table(tmp_path / "table.csv", table_rows(880))
    spec["dataset"] = {"name": "csv", "options": {"file": str(file), "target": "label", "in_memory": "never"}}
    spec["model"] = {"name": "linear"}
    run = by_hand(spec)
    wait_for(lambda: run.series("loss", 1) and run.series("loss", 0), seconds=200, what="the first losses")
    processes = engine_processes(run)
    processes["worker-1"].kill()
    gone = "worker-1 ended; training goes on with 1 of 2 workers"
    wait_for(lambda: any(e.type == "phase" and e.detail == gone for e in run.events), seconds=60, what="the news")
    step = max(run.series("loss"))
    wait_for(lambda: max(run.series("loss")) > step + 100, seconds=60, what="steps of worker-0 alone")
    processes["worker-0"].kill()
    assert run.finish(60) == 1
    assert "worker-1 was ended by SIGKILL; the job goes on without it" in run.stderr
    assert "All workers ended (worker-0, worker-1), so there is nobody left to train." in run.stderr
    assert not (run.out / "model.keras").exists()
    losses = run.series("loss")
    assert list(losses) == list(range(1, len(losses) + 1))
    whole = len(losses) // 22
    epochs = np.sort(np.reshape(list(losses.values())[: whole * 22], (whole, 22)), axis=1)
    assert len(set(epochs[0].tolist())) == 22
    assert np.abs(epochs - epochs[0]).max() < 1e-5


@pytest.mark.tensorflow
def test_it_trains_convolutions_in_bfloat16_and_fails_at_once_without_a_parameter_server(by_hand: Start) -> None:
    training = {"epochs": 100_000, "mixed_precision": "bfloat16", "global_batch": 40}
    spec = asynchronous(training, workers=1, partitioner="min_size")
    spec["dataset"] = {"name": "synthetic_images", "options": {"shape": [8, 8, 3], "classes": 4, "samples": 600}}
    spec["model"] = {"name": "cnn", "options": {"filters": [8], "units": 16, "dropout": 0.1}}
    run = by_hand(spec)
    wait_for(lambda: max(run.series("val_accuracy").values(), default=0) > 0.9, seconds=200, what="what it learned")
    engine_processes(run)["ps-0"].kill()
    assert run.finish(60) == 1
    assert "failed in ps-0: ps-0 was ended by SIGKILL" in run.stderr
    assert not (run.out / "model.keras").exists()
