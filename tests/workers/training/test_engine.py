"""The engine as a whole, in processes of its own, against a training loop written by hand."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.waiting import wait_for
from tests.workers.training.conftest import ByHand, run_script, seed_with
from workers.contract.events import parse_event
from workers.contract.layout import assign
from workers.contract.spec import parse
from workers.gang import Gang
from workers.training.here import HOST, place_here, tpu_here

pytestmark = pytest.mark.tensorflow
ENDLESS = {"epochs": 100_000}
Start = Callable[..., ByHand]


def engine_processes(run: ByHand) -> dict[str, psutil.Process]:
    """The run's engine processes by name (`worker-0`)."""
    found = {}
    for child in psutil.Process(run.process.pid).children(recursive=True):
        command = child.cmdline()
        if command and command[-1].endswith(".json"):
            found[Path(command[-1]).stem] = child
    return found


@pytest.fixture(scope="module")
def dropped() -> dict[str, Any]:
    return run_script("replica_dropout.py", "mirrored", "central_storage")


def test_it_learns_the_digits_on_two_workers(seed_run: ByHand) -> None:
    finished = seed_run.events[-1]
    assert finished.type == "finished"
    assert finished.step == 110
    assert finished.metrics["val_accuracy"] > 0.9
    assert len(seed_run.series("val_accuracy")) == 10


@pytest.mark.parametrize("name", ["loss", "accuracy"])
def test_it_tells_every_step_once_and_in_order(name: str, seed_run: ByHand) -> None:
    steps = [
        step
        for event in seed_run.events
        if event.type == "points"
        for series in event.series
        if series.name == name
        for step in series.steps
    ]
    assert steps == list(range(1, 111))


def test_it_prints_what_it_keeps(seed_run: ByHand) -> None:
    assert seed_run.stdout == (seed_run.out / "events.jsonl").read_text()
    assert "110 steps" in seed_run.stderr


def test_it_tells_exact_figures_before_the_first_step(seed_run: ByHand) -> None:
    started = next(event for event in seed_run.events if event.type == "started")
    assert (started.global_batch, started.per_replica_batch, started.steps_per_epoch) == (128, 64, 11)
    assert (started.training_samples, started.validation_samples, started.test_samples) == (1438, 359, 0)
    assert started.parameters == (64 + 1) * 256 + (256 + 1) * 128 + (128 + 1) * 10
    assert [info.process for info in started.replicas] == ["worker-0", "worker-1"]


def test_it_goes_through_the_phases_in_each_process(seed_run: ByHand) -> None:
    for process in ("worker-0", "worker-1"):
        told = [event.phase for event in seed_run.events if event.type == "phase" and event.process == process]
        assert told[:6] == ["importing", "connecting", "loading", "building", "compiling", "training"]
        assert told[-1] == "saving"


def test_it_gauges_every_replica(seed_run: ByHand) -> None:
    for replica in (0, 1):
        assert all(0 <= value <= 100 for value in seed_run.series("utilization", replica).values())
        assert all(value > 1e8 for value in seed_run.series("memory", replica).values())
        assert seed_run.series("utilization", replica)


def test_it_leaves_a_model_that_keras_loads(seed_run: ByHand, hand_written: dict[str, Any]) -> None:
    assert hand_written["right"][str(seed_run.out / "model.keras")] > 0.9


def test_it_leaves_no_unfinished_file(seed_run: ByHand) -> None:
    artifact = next(event for event in seed_run.events if event.type == "artifact")
    assert (seed_run.out / "model.keras").stat().st_size == artifact.bytes
    assert not list(seed_run.out.glob(".unfinished*"))


def test_it_ends_with_the_weights_of_a_run_by_hand(exact_run: ByHand, hand_written: dict[str, Any]) -> None:
    assert hand_written["distances"][str(exact_run.out / "model.keras")] < 1e-5


def test_it_tells_the_exact_loss_of_every_step(exact_run: ByHand, hand_written: dict[str, Any]) -> None:
    assert list(exact_run.series("loss").values()) == pytest.approx(hand_written["losses"], abs=2e-5)


def test_it_evaluates_a_split_smaller_than_the_replicas(exact_run: ByHand, hand_written: dict[str, Any]) -> None:
    finished = next(event for event in exact_run.events if event.type == "finished")
    assert finished.metrics["val_loss"] == pytest.approx(hand_written["val_loss"], abs=2e-5)
    assert finished.metrics["val_accuracy"] == hand_written["val_accuracy"]


def test_it_trains_in_half_precision_with_xla_and_tests_at_the_end(by_hand: Start) -> None:
    spec = seed_with(
        dataset={"name": "synthetic_images", "options": {"shape": [8, 8, 3], "classes": 4, "samples": 600}},
        model={"name": "cnn", "options": {"filters": [8], "units": 16}},
        strategy={"name": "mirrored"},
        training={
            "epochs": 3,
            "global_batch": 40,
            "mixed_precision": "float16",
            "jit": True,
            "steps_per_call": 5,
            "warmup_steps": 10,
            "learning_rate_scaling": "linear",
            "optimizer": {"name": "adam", "learning_rate": 0.005},
        },
    )
    run = by_hand(spec)
    assert run.finish() == 0, run.stderr
    assert run.series("test_accuracy")[36] > 0.9
    assert run.series("learning_rate")[5] == pytest.approx(0.005)
    assert run.series("learning_rate")[10] == pytest.approx(0.01)
    assert run.series("samples_seen")[36] == 36 * 40


@pytest.mark.parametrize("strategy", ["mirrored", "central_storage"])
def test_it_drops_other_units_in_each_replica_at_each_step(strategy: str, dropped: dict[str, Any]) -> None:
    answer = dropped[strategy]
    (one_device, same), (later, _) = answer["alike"]
    assert one_device == same
    (first, second), (first_later, second_later) = answer["varied"]
    assert first == one_device
    assert first_later == later
    assert len({tuple(kept) for kept in (first, second, first_later, second_later)}) == 4


def test_it_fails_when_the_loss_is_no_longer_a_number(by_hand: Start) -> None:
    spec = seed_with(
        model={"name": "mlp", "options": {"units": [64] * 6, "dropout": [0] * 6, "activation": "gelu"}},
        strategy={"name": "one_device"},
        training={"optimizer": {"name": "momentum", "learning_rate": 100}, "stop_on_nan": True},
    )
    run = by_hand(spec)
    assert run.finish() == 1
    bad = [step for step, value in run.series("loss").items() if not math.isfinite(value)]
    assert f"failed in worker-0: The loss became NaN at step {bad[0]};" in run.stderr
    failed = run.events[-1]
    assert failed.type == "failed"
    assert failed.reason == "nan"
    assert not (run.out / "model.keras").exists()


def test_it_names_the_worker_that_was_killed(by_hand: Start) -> None:
    run = by_hand(seed_with(training=ENDLESS))
    wait_for(lambda: run.series("loss"), seconds=200, what="the first loss")
    engine_processes(run)["worker-1"].kill()
    assert run.finish(30) == 1
    assert "failed in worker-1: worker-1 was ended by SIGKILL" in run.stderr


def test_it_ends_everything_on_ctrl_c(by_hand: Start) -> None:
    run = by_hand(seed_with(strategy={"name": "one_device"}, training=ENDLESS))
    wait_for(lambda: run.series("loss"), seconds=200, what="the first loss")
    [process] = engine_processes(run).values()
    run.process.send_signal(signal.SIGINT)
    assert run.finish(30) == 130
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_it_ends_at_once_on_sigterm_and_loses_no_line(by_hand: Start) -> None:
    run = by_hand(seed_with(strategy={"name": "one_device"}, training=ENDLESS))
    wait_for(lambda: len(run.series("loss")) > 100, seconds=200, what="a hundred steps")
    [process] = engine_processes(run).values()
    before = time.monotonic()
    os.kill(process.pid, signal.SIGTERM)
    assert run.finish(30) == 1
    assert time.monotonic() - before < 3
    assert "worker-0 was ended by SIGTERM" in run.stderr
    steps = list(run.series("loss"))
    assert steps == list(range(1, len(steps) + 1))
    assert (run.out / "events" / "worker-0.jsonl").read_bytes().endswith(b"\n")


def test_it_ends_by_sigterm_also_among_other_workers(tmp_path: Path) -> None:
    spec = parse(seed_with(training=ENDLESS))
    gang = Gang(tmp_path, spec, place_here(spec), HOST, grace=30)
    gang.start()
    try:
        told = tmp_path / "events" / "worker-0.jsonl"
        wait_for(lambda: told.exists() and b'"points"' in told.read_bytes(), seconds=200, what="the first points")
    finally:
        ends = gang.stop()
    assert [(end.code, end.signal) for end in ends] == [(None, "SIGTERM")] * 2


@pytest.mark.skipif(tpu_here(), reason="this machine has a TPU")
@pytest.mark.parametrize("address", ["local", "grpc://127.0.0.1:1"])
def test_it_says_that_no_tpu_answers_when_it_was_placed_on_one(address: str, tmp_path: Path) -> None:
    spec = parse(seed_with(strategy={"name": "tpu", "options": {"address": address}}))
    [shape] = spec.layout.processes
    place = assign(shape, first_replica=0, host=HOST, address="127.0.0.1", kind="tpu", devices=tuple(range(8)))
    gang = Gang(tmp_path, spec, (place,), HOST, grace=2)
    gang.start()
    try:
        told = tmp_path / "events" / "worker-0.jsonl"
        wait_for(lambda: told.exists() and b'"failed"' in told.read_bytes(), seconds=200, what="the end")
    finally:
        gang.stop()
    failed = parse_event(told.read_bytes().splitlines()[-1])
    assert failed.type == "failed"
    assert failed.reason == "device"
    assert failed.cause.startswith(f"No TPU answers at {address} (")


def test_it_says_how_to_supply_data_that_is_not_there(by_hand: Start, tmp_path: Path) -> None:
    spec = seed_with(dataset={"name": "mnist"}, strategy={"name": "one_device"})
    run = by_hand(spec, KERAS_HOME=str(tmp_path), LOCKSTEP_OFFLINE="1")
    assert run.finish() == 1
    assert "Put mnist.npz from" in run.stderr
    assert str(tmp_path / "datasets") in run.stderr
    assert "Traceback" not in run.stderr
