from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.webapp.cluster.hosts import hear, tried
from tests.webapp.jobs import scene
from webapp.cluster import reaper, scheduler
from webapp.cluster.clock import database_now
from webapp.cluster.models import Device, Host
from webapp.jobs import services
from webapp.jobs.models import Attempt, Checkpoint, Job, State
from webapp.jobs.progress import apply
from webapp.teams.models import Team, User
from workers.contract.assignment import Assignment

Spec = dict[str, Any]
ONE = {"name": "one_device"}


def test_it_starts_a_job_on_devices_that_are_then_its_own(team: Team, alice: User, seed_spec: Spec) -> None:
    hear("h1", cpus=3)
    job = scene.queue(team, alice, seed_spec)
    assert scheduler.schedule() == [job.pk]
    job.refresh_from_db()
    attempt = Attempt.objects.get(job=job)
    assert (job.state, job.processes_total, attempt.number) == (State.STARTING, 2, 1)
    assert list(Device.objects.filter(attempt=attempt).values_list("index", flat=True)) == [0, 1]
    assignment = Assignment.model_validate(attempt.assignment)
    assert (assignment.job, assignment.attempt, assignment.spec) == (job.pk, attempt.pk, job.spec)
    assert list(attempt.processes.values_list("name", "host", "chief", "devices", "replicas")) == [
        ("worker-0", "h1", True, ["cpu:0"], [0]),
        ("worker-1", "h1", False, ["cpu:1"], [1]),
    ]
    assert [s.host for s in attempt.supervisors.all()] == ["h1"]
    assert scheduler.schedule() == []


def test_it_starts_the_oldest_first_and_lets_smaller_ones_pass_a_waiting_one(
    team: Team, alice: User, seed_spec: Spec
) -> None:
    hear("h1", cpus=3)
    first, large, small = (scene.queue(team, alice, seed_spec, **c) for c in ({}, {}, {"strategy": ONE}))
    assert scheduler.schedule() == [first.pk, small.pk]
    scheduler.schedule()
    large.refresh_from_db()
    assert (large.state, large.reason) == (State.QUEUED, "waiting for 2 CPU devices")
    revision = large.revision
    scheduler.schedule()
    large.refresh_from_db()
    assert large.revision == revision, "the same reason is no news"


def test_it_waits_for_a_host_that_is_online_and_has_the_dataset(team: Team, alice: User, seed_spec: Spec) -> None:
    job = scene.queue(team, alice, seed_spec)
    hear("h1", unavailable={"digits": "no"})
    hear("h2")
    Host.objects.filter(name="h2").update(heard=database_now() - timedelta(minutes=1))
    assert scheduler.schedule() == []
    job.refresh_from_db()
    assert job.reason == "waiting for a host with digits"
    hear("h2")
    assert scheduler.schedule() == [job.pk]


def test_it_fails_a_job_whose_plugin_is_gone_and_goes_on(team: Team, alice: User, seed_spec: Spec) -> None:
    hear("h1")
    broken, good = scene.queue(team, alice, seed_spec), scene.queue(team, alice, seed_spec)
    spec = {**broken.spec_json, "strategy": {"name": "telepathy"}}
    Job.objects.filter(pk=broken.pk).update(spec_json=spec)
    assert scheduler.schedule() == [good.pk]
    broken.refresh_from_db()
    assert broken.state == State.FAILED and "strategy" in broken.cause


def test_it_takes_nothing_when_another_was_quicker_with_a_device(
    team: Team, alice: User, bob: User, seed_spec: Spec, monkeypatch: Any
) -> None:
    hear("h1", cpus=2)
    holder = scene.launch(scene.queue(team, bob, seed_spec), "h1")
    job = scene.queue(team, alice, seed_spec)
    read = scheduler.offers.read

    def read_then_lose_one(hosts: Any) -> Any:
        found = read(hosts)
        Device.objects.filter(index=1).update(attempt=holder)
        return found

    monkeypatch.setattr(scheduler.offers, "read", read_then_lose_one)
    assert scheduler.schedule() == []
    job.refresh_from_db()
    assert job.state == State.QUEUED and not Attempt.objects.filter(job=job).exists()
    assert Device.objects.get(index=0).attempt is None


def test_it_leaves_a_job_alone_that_was_cancelled_meanwhile(team: Team, alice: User, seed_spec: Spec) -> None:
    hear("h1")
    job = scene.queue(team, alice, seed_spec)
    stale = Job.objects.get(pk=job.pk)
    services.request_stop(job=job, by=alice)
    plan = scheduler.place(stale.spec.layout, scheduler.offers.able(scheduler.offers.read(Host.objects.online()), "x"))
    assert not isinstance(plan, scheduler.Waiting)
    assert not scheduler._start(stale, stale.spec, plan)
    assert not Device.objects.filter(attempt__isnull=False).exists()


def test_it_spreads_a_job_over_hosts_with_real_ports(team: Team, alice: User, seed_spec: Spec) -> None:
    hear("a", cpus=1)
    hear("b", cpus=1)
    first = scene.queue(team, alice, seed_spec)
    scheduler.schedule()
    ports = {p["host"]: p["port"] for p in Attempt.objects.get(job=first).assignment["processes"]}
    assert set(ports) == {"a", "b"} and all(ports.values())
    Device.objects.update(attempt=None)
    second = scene.queue(team, alice, seed_spec)
    scheduler.schedule()
    again = {p["host"]: p["port"] for p in Attempt.objects.get(job=second).assignment["processes"]}
    assert not set(ports.values()) & set(again.values())


def test_it_takes_devices_by_statements_on_their_own_table_alone(
    team: Team, alice: User, seed_spec: Spec, django_assert_max_num_queries: Any
) -> None:
    """With a join, PostgreSQL let two control processes take one device: it rechecks only the table it updates."""
    hear("h1", cpus=2)
    scene.queue(team, alice, seed_spec)
    with django_assert_max_num_queries(40) as captured:
        scheduler.schedule()
    taking = [query["sql"] for query in captured if query["sql"].startswith('UPDATE "cluster_device"')]
    assert len(taking) == 1 and "SELECT" not in taking[0] and '"attempt_id" IS NULL' in taking[0]


def test_it_gives_no_host_what_failed_in_its_self_test(team: Team, alice: User, seed_spec: Spec) -> None:
    failing = tried({"multi_worker_mirrored/mean/none/plain": "Boom."})
    hear("h1", cpus=2, selftest=failing)
    job = scene.queue(team, alice, seed_spec)
    assert scheduler.schedule() == []
    job.refresh_from_db()
    assert job.reason == "waiting for a host whose self-test passed multi_worker_mirrored/mean/none/plain"
    hear("h2", cpus=4)
    assert scheduler.schedule() == [job.pk]
    assert {process.host for process in Attempt.objects.get(job=job).processes.all()} == {"h2"}


def test_a_resumed_job_is_sent_with_its_checkpoint_and_gets_devices_again(
    team: Team, alice: User, seed_spec: Spec
) -> None:
    hear("h1", cpus=2)
    job = scene.queue(team, alice, seed_spec)
    scheduler.schedule()
    first = Attempt.objects.get()
    assert Assignment.model_validate(first.assignment).resume is None
    Checkpoint.objects.create(job=job, attempt=first, name="step-7", step=7, stored=database_now())
    services.request_pause(job=job)
    apply(attempt=first, process="supervisor@h1", events=[scene.ended("h1", "paused")])
    reaper.release()
    assert Device.objects.filter(attempt__isnull=False).count() == 0
    assert scheduler.schedule() == []
    assert services.resume(job=job)
    assert scheduler.schedule() == [job.pk]
    second = Attempt.objects.get(number=2)
    assert second.resume_step == 7
    assert Assignment.model_validate(second.assignment).resume == f"jobs/{job.pk}/checkpoints/step-7"
