from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.webapp.cluster.hosts import hear, inventory, listen, tried
from tests.webapp.jobs import scene
from webapp.cluster import hearing
from webapp.cluster.clock import database_now
from webapp.cluster.models import Device, Host, Listening
from webapp.jobs.models import Supervisor
from webapp.teams.models import Team, User


def devices(host: Host) -> list[tuple[str, int]]:
    return list(host.devices.values_list("kind", "index"))


def test_it_knows_a_host_and_its_devices_from_its_first_word(db: None) -> None:
    host = hear("h1", cpus=1, gpus=2)
    assert devices(host) == [("cpu", 0), ("gpu", 0), ("gpu", 1)]
    assert host.inventory == inventory("h1", cpus=1, gpus=2)
    assert list(Host.objects.online()) == [host]


def test_it_writes_no_device_when_nothing_is_new(db: None, django_assert_max_num_queries: Any) -> None:
    hear()
    told = inventory()
    with django_assert_max_num_queries(4):  # the clock of PostgreSQL is one of them
        hearing.hear_host(told)


def test_it_drops_vanished_devices_but_not_those_that_a_job_holds(
    team: Team, alice: User, seed_spec: dict[str, Any]
) -> None:
    host = hear("h1", cpus=3)
    attempt = scene.launch(scene.queue(team, alice, seed_spec), "h1")
    Device.objects.filter(host=host, index=2).update(attempt=attempt)
    hear("h1", cpus=1)
    assert devices(host) == [("cpu", 0), ("cpu", 2)]
    Device.objects.update(attempt=None)
    hear("h1", cpus=1)
    assert devices(host) == [("cpu", 0)]


def test_it_hears_a_supervisor_where_it_was_sent_only(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    attempt = scene.launch(scene.queue(team, alice, seed_spec), "h1")
    assert hearing.hear_attempt(attempt.pk, "h1")
    assert not hearing.hear_attempt(attempt.pk, "h2")
    assert not hearing.hear_attempt(attempt.pk + 99, "h1")
    assert Supervisor.objects.get(attempt=attempt).heard


def test_it_takes_a_host_as_offline_after_the_lease(db: None) -> None:
    hear()
    Host.objects.update(heard=database_now() - timedelta(seconds=31))
    assert not Host.objects.online().exists()
    assert Host.objects.known().exists()


def test_it_remembers_since_when_ingest_listens_without_a_gap(db: None) -> None:
    listen(since_seconds=100, last_seconds=1)
    before = Listening.objects.get().since
    hearing.ingest_listening()
    assert Listening.objects.get().since == before
    listen(since_seconds=100, last_seconds=20)
    hearing.ingest_listening()
    assert database_now() - Listening.objects.get().since < timedelta(seconds=10)


def test_it_keeps_the_results_of_the_self_test_until_there_are_newer_ones(db: None) -> None:
    assert hear().selftest is None
    first, second = tried({}, "mirrored/mean/none/plain"), tried({"mirrored/mean/none/plain": "Boom."})
    assert hear(selftest=first).selftest == first
    assert hear().selftest == first
    assert hear(selftest=second).selftest == second
