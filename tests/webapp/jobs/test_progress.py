from __future__ import annotations

import math
import time
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.webapp.jobs import scene
from webapp.jobs import services
from webapp.jobs.models import Attempt, Job, Process, State, Supervisor
from webapp.jobs.progress import apply
from webapp.teams.models import Team, User
from workers.contract import events as ev


@pytest.fixture
def attempt(team: Team, alice: User, seed_spec: dict[str, Any]) -> Attempt:
    return scene.launch(scene.queue(team, alice, seed_spec), "h1", "h1")


@pytest.fixture
def spread(team: Team, alice: User, seed_spec: dict[str, Any]) -> Attempt:
    return scene.launch(scene.queue(team, alice, seed_spec), "h1", "h2")


def job_of(attempt: Attempt) -> Job:
    return Job.objects.get(pk=attempt.job_id)


def tell(attempt: Attempt, process: str, *events: ev.Event) -> bool:
    return apply(attempt=attempt, process=process, events=events)


def test_it_runs_once_a_process_is_heard_and_counts_who_is_up(attempt: Attempt) -> None:
    assert tell(attempt, "worker-1", scene.phase("importing", "worker-1"))
    job = job_of(attempt)
    assert (job.state, job.processes_up, job.phase) == (State.RUNNING, 1, ""), "only the chief's phase is the job's"
    assert tell(attempt, "worker-0", scene.phase("importing"), scene.phase("loading", detail="digits"))
    job = job_of(attempt)
    assert (job.processes_up, job.phase, job.phase_detail) == (2, "loading", "digits")


def test_it_takes_the_exact_figures_of_the_engine(attempt: Attempt) -> None:
    # Replica 1 is held by two devices together.
    held = [(0, "CPU:0"), (1, "CPU:0"), (1, "CPU:1")]
    replicas = tuple(ev.ReplicaInfo(replica=i, process=f"worker-{i}", device=device) for i, device in held)
    started = ev.Started(
        time=time.time(),
        process="worker-0",
        replicas=replicas,
        global_batch=128,
        per_replica_batch=64,
        steps_per_epoch=9,
        total_steps=90,
        training_samples=1200,
        validation_samples=200,
        test_samples=300,
        parameters=1,
        peak_learning_rate=0.001,
        steps_per_call=1,
        versions={},
    )
    assert tell(attempt, "worker-0", started)
    job = job_of(attempt)
    assert (job.state, job.total_steps, job.steps_per_epoch) == (State.RUNNING, 90, 9)
    assert [info["process"] for info in job.started_info["replicas"]] == ["worker-0", "worker-1", "worker-1"]
    assert job.replicas == 2


def test_it_keeps_position_newest_values_and_the_sparkline(attempt: Attempt) -> None:
    assert tell(attempt, "worker-0", scene.points([1, 2, 3], loss=[3.0, 2.0, 1.0], throughput=[10.0, 20.0, math.nan]))
    job = job_of(attempt)
    assert (job.step, job.epoch, job.loss, job.throughput) == (3, 1, 1.0, None)
    assert job.latest == {"loss": 1.0, "throughput": "NaN"}
    assert job.spark == [[1, 3.0], [2, 2.0], [3, 1.0]]
    assert job.first_step and job.started and job.first_step >= job.started


def test_it_leaves_series_of_replicas_to_the_series_store(attempt: Attempt) -> None:
    series = ev.SeriesPoints(name="utilization", replica=1, steps=[1], times=[1.0], values=[50.0])
    event = ev.Points(time=time.time(), process="worker-1", step=1, epoch=1, series=[series])
    tell(attempt, "worker-1", event)
    assert job_of(attempt).latest == {}
    assert not tell(attempt, "worker-1", event), "nothing that a page shows has changed"


def test_it_costs_one_read_and_one_update_for_points(
    attempt: Attempt, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    batch = [scene.points([i], loss=[1.0 / i]) for i in range(1, 50)]
    with django_assert_num_queries(2):
        apply(attempt=attempt, process="worker-0", events=batch)
    assert job_of(attempt).step == 49 and job_of(attempt).revision == 2


def test_it_remembers_pids_exits_and_artifacts(attempt: Attempt) -> None:
    now = time.time()
    tell(
        attempt,
        "supervisor@h1",
        ev.Spawned(time=now, process="supervisor@h1", target="worker-0", host="h1", pid=77, devices=("cpu:0",)),
        ev.Exited(time=now, process="supervisor@h1", target="worker-0", code=None, signal="SIGKILL"),
    )
    process = Process.objects.get(attempt=attempt, name="worker-0")
    assert (process.pid, process.exit_signal, process.exit_code) == (77, "SIGKILL", None)
    artifact = ev.Artifact(time=now, process="worker-0", name="model", path="model.keras", bytes=5, sha256="ab")
    tell(attempt, "worker-0", artifact, artifact)
    assert [each["path"] for each in job_of(attempt).artifacts] == ["model.keras"]


def test_it_succeeds_with_the_last_word_of_the_last_host(spread: Attempt) -> None:
    tell(spread, "worker-0", scene.phase("training"))
    tell(spread, "supervisor@h2", scene.ended("h2", "succeeded"))
    assert job_of(spread).state == State.RUNNING
    finished = ev.Finished(time=time.time(), process="worker-0", metrics={"test_accuracy": 0.9}, step=60)
    assert tell(spread, "worker-0", finished)
    assert tell(spread, "supervisor@h1", scene.ended("h1", "succeeded"))
    job = job_of(spread)
    assert (job.state, job.latest["test_accuracy"], job.step) == (State.SUCCEEDED, 0.9, 60)
    assert Attempt.objects.get(pk=spread.pk).ended


def test_it_keeps_why_the_job_ended_early(attempt: Attempt) -> None:
    words = "Stopped early at epoch 4: val_loss did not improve for 2 epochs"
    tell(attempt, "worker-0", scene.phase("saving"))
    tell(
        attempt, "worker-0", ev.Finished(time=time.time(), process="worker-0", metrics={}, step=40, stopped_early=words)
    )
    assert job_of(attempt).phase_detail == words


def test_it_fails_with_the_cause_the_process_and_its_log(attempt: Attempt) -> None:
    tell(attempt, "worker-0", scene.phase("training"))
    assert tell(attempt, "supervisor@h1", scene.ended("h1", "failed", "worker-1 ran out of memory.", "worker-1", "OOM"))
    job = job_of(attempt)
    assert (job.state, job.cause, job.failed_process, job.log_tail) == (
        State.FAILED,
        "worker-1 ran out of memory.",
        "worker-1",
        "OOM",
    )


def test_it_takes_the_words_of_the_process_where_the_supervisor_has_none(attempt: Attempt) -> None:
    tell(attempt, "worker-1", ev.Failed(time=time.time(), process="worker-1", cause="The loss is NaN.", reason="nan"))
    tell(attempt, "supervisor@h1", scene.ended("h1", "failed"))
    assert (job_of(attempt).cause, job_of(attempt).failed_process) == ("The loss is NaN.", "worker-1")


def test_it_ends_the_other_hosts_when_one_has_failed(spread: Attempt) -> None:
    tell(spread, "worker-0", scene.phase("training"))
    assert tell(spread, "supervisor@h2", scene.ended("h2", "failed", "It crashed.", "worker-1"))
    assert job_of(spread).state == State.STOPPING
    tell(spread, "supervisor@h1", scene.ended("h1", "cancelled", "It was told to stop."))
    job = job_of(spread)
    assert (job.state, job.cause, job.failed_process) == (State.FAILED, "It crashed.", "worker-1")


@pytest.mark.parametrize(
    ("outcome", "state"),
    [("cancelled", State.CANCELLED), ("failed", State.CANCELLED), ("succeeded", State.SUCCEEDED)],
)
def test_it_is_cancelled_after_a_stop_unless_it_had_succeeded(
    attempt: Attempt, bob: User, outcome: str, state: State
) -> None:
    tell(attempt, "worker-0", scene.phase("training"))
    assert services.request_stop(job=attempt.job, by=bob)
    assert tell(attempt, "supervisor@h1", scene.ended("h1", outcome, "said the host"))
    assert job_of(attempt).state == state
    assert job_of(attempt).cause == ("Stopped by bob." if state == State.CANCELLED else "")


def test_it_refuses_state_changes_of_an_ended_attempt_but_takes_its_points(attempt: Attempt) -> None:
    tell(attempt, "supervisor@h1", scene.ended("h1", "failed", "lost"))
    before = job_of(attempt)
    tell(attempt, "worker-0", scene.phase("training"))
    assert not tell(attempt, "supervisor@h1", scene.ended("h1", "succeeded"))
    assert tell(attempt, "worker-0", scene.points([5], loss=[0.5]))
    after = job_of(attempt)
    assert (after.state, after.cause, after.phase) == (before.state, before.cause, before.phase)
    assert (after.step, after.loss) == (5, 0.5)
    assert Supervisor.objects.get(attempt=attempt).outcome == "succeeded", "its devices may go"


def test_it_holds_wrong_clocks_of_hosts_between_start_and_now(attempt: Attempt) -> None:
    event = ev.SeriesPoints(name="loss", steps=[1], times=[1e18], values=[1.0])
    tell(attempt, "worker-0", ev.Points(time=0, process="worker-0", step=1, epoch=1, series=[event]))
    tell(attempt, "supervisor@h1", ev.Ended(time=4e9, process="supervisor@h1", outcome="succeeded"))
    job = job_of(attempt)
    assert job.first_step and job.ended and job.started
    assert job.started <= job.first_step and job.ended.timestamp() <= time.time()


def test_it_does_nothing_without_events(attempt: Attempt, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        assert not apply(attempt=attempt, process="worker-0", events=[])


def test_it_stores_what_a_crashed_process_left_in_its_log(attempt: Attempt) -> None:
    tell(attempt, "supervisor@h1", scene.ended("h1", "failed", "c" * 5000, "worker-0", "core\x00dump"))
    job = job_of(attempt)
    assert (job.log_tail, len(job.cause)) == ("core\ufffddump", 1000)
