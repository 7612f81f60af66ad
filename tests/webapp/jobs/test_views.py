from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.webapp.jobs import scene
from webapp.jobs.models import Checkpoint, Job, State
from webapp.teams.models import Team, User
from workers.contract.spec import parse

PAGES = ["job", "job-state", "job-spec"]


@pytest.fixture
def job(team: Team, alice: User, seed_spec: dict[str, Any]) -> Job:
    return scene.queue(team, alice, seed_spec, tags=["baseline"])


def addresses(team: Team, job: Job) -> list[str]:
    of_job = [reverse(name, args=[job.pk]) for name in [*PAGES, "job-stop"]]
    return [reverse("jobs", args=[team.slug]), reverse("jobs-rows", args=[team.slug]), *of_job]


def ask(client: Client, address: str) -> Any:
    return client.post(address) if address.endswith("stop") else client.get(address)


def test_it_does_not_exist_for_a_stranger(client: Client, team: Team, job: Job, charlie: User) -> None:
    client.force_login(charlie)
    assert {ask(client, address).status_code for address in addresses(team, job)} == {404}
    job.refresh_from_db()
    assert job.state == State.QUEUED


def test_it_sends_the_anonymous_to_the_login_page(client: Client, team: Team, job: Job) -> None:
    for address in addresses(team, job):
        answer = ask(client, address)
        assert answer.status_code == 302 and answer["Location"].startswith(reverse("login")), address


def test_it_lets_a_reader_look_but_not_stop(client: Client, team: Team, job: Job, rita: User) -> None:
    client.force_login(rita)
    assert client.get(reverse("job-state", args=[job.pk])).status_code == 200
    assert client.post(reverse("job-stop", args=[job.pk])).status_code == 403
    job.refresh_from_db()
    assert job.state == State.QUEUED


def test_it_stops_and_goes_back_to_the_page(client: Client, job: Job, bob: User) -> None:
    client.force_login(bob)
    answer = client.post(reverse("job-stop", args=[job.pk]), headers={"accept": "text/html"})
    assert (answer.status_code, answer["Location"]) == (303, reverse("job", args=[job.pk]))
    job.refresh_from_db()
    assert job.state == State.CANCELLED


def test_it_answers_scripts_with_the_job(client: Client, job: Job, bob: User) -> None:
    client.force_login(bob)
    address, headers = reverse("job-stop", args=[job.pk]), {"accept": "application/json"}
    first, second = client.post(address, headers=headers), client.post(address, headers=headers)
    assert (first.status_code, first.json()["state"]) == (200, "cancelled")
    assert second.status_code == 409


@pytest.mark.parametrize("verb", ["job-pause", "job-resume", "job-save"])
def test_verbs_are_for_writers_of_the_team_at_the_right_time(
    client: Client, job: Job, bob: User, rita: User, charlie: User, verb: str
) -> None:
    address, headers = reverse(verb, args=[job.pk]), {"accept": "application/json"}
    for user, status in ((charlie, 404), (rita, 403), (bob, 409)):
        client.force_login(user)
        assert client.post(address, headers=headers).status_code == status
    assert client.get(address).status_code == 405


def test_pause_and_resume_answer_with_the_job(client: Client, job: Job, bob: User) -> None:
    attempt = scene.launch(job, "h1")
    client.force_login(bob)
    headers = {"accept": "application/json"}
    answer = client.post(reverse("job-pause", args=[job.pk]), headers=headers)
    assert (answer.status_code, answer.json()["state"]) == (200, "pausing")
    Checkpoint.objects.create(job=job, attempt=attempt, name="step-7", step=7, stored=timezone.now())
    Job.objects.filter(pk=job.pk).update(state=State.PAUSED)
    page = client.get(reverse("job", args=[job.pk])).content.decode()
    assert "Resume from step 7" in page
    answer = client.post(reverse("job-resume", args=[job.pk]))
    assert (answer.status_code, answer["Location"]) == (303, reverse("job", args=[job.pk]))
    job.refresh_from_db()
    assert job.state == State.QUEUED


def test_it_does_not_stop_on_get(client: Client, job: Job, bob: User) -> None:
    client.force_login(bob)
    assert client.get(reverse("job-stop", args=[job.pk])).status_code == 405


def test_it_shows_the_page_of_one_job(client: Client, job: Job, rita: User) -> None:
    client.force_login(rita)
    answer = client.get(reverse("job", args=[job.pk]))
    assert answer.status_code == 200
    assert (answer.context["job"], answer.context["message"]["id"]) == (job, job.pk)
    assert (answer.context["team"], answer.context["may_write"]) == (job.team, False)
    assert parse(answer.context["spec_yaml"]) == job.spec


def test_it_gives_the_spec_as_a_file(client: Client, job: Job, alice: User) -> None:
    client.force_login(alice)
    answer = client.get(reverse("job-spec", args=[job.pk]))
    assert parse(answer.content) == job.spec
    assert answer["Content-Disposition"] == f'attachment; filename="digits-on-two-workers-{job.pk}.yaml"'


def test_it_shows_the_table(client: Client, team: Team, job: Job, bob: User) -> None:
    client.force_login(bob)
    answer = client.get(reverse("jobs", args=[team.slug]))
    assert [row["id"] for row in answer.context["rows"]] == [job.pk]
    assert (answer.context["total"], answer.context["may_write"]) == (1, True)
    odd = client.get(reverse("jobs", args=[team.slug]), {"sort": "nonsense"})
    assert (odd.status_code, odd["Location"]) == (302, reverse("jobs", args=[team.slug]))


@pytest.fixture
def many(team: Team, alice: User, bob: User, seed_spec: dict[str, Any]) -> dict[str, int]:
    made = {
        "a": scene.queue(team, alice, seed_spec, name="Alpha net", tags=["baseline"]),
        "b": scene.queue(team, bob, seed_spec, name="beta", model={"name": "linear"}),
        "c": scene.queue(team, alice, seed_spec, name="gamma", strategy={"name": "one_device"}),
    }
    Job.objects.filter(pk=made["a"].pk).update(loss=0.5, latest={"loss": 0.5}, state=State.RUNNING)
    Job.objects.filter(pk=made["b"].pk).update(loss=0.1, latest={"loss": 0.1}, state=State.FAILED)
    return {name: job.pk for name, job in made.items()}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, "cba"),
        ({"sort": "id"}, "abc"),
        ({"sort": "-created"}, "cba"),
        ({"sort": "name"}, "abc"),
        ({"sort": "loss"}, "bac"),
        ({"sort": "-loss"}, "abc"),
        ({"state": "running,failed", "sort": "id"}, "ab"),
        ({"state": "active", "sort": "id"}, "ac"),
        ({"q": "ALPHA"}, "a"),
        ({"q": "state:running net"}, "a"),
        ({"q": "tag:baseline"}, "a"),
        ({"q": "owner:bob"}, "b"),
        ({"model": "linear"}, "b"),
        ({"strategy": "one_device"}, "c"),
        ({"owner": "alice", "dataset": "digits", "sort": "id"}, "ac"),
        ({"tag": "base"}, ""),
        ({"q": "100%"}, ""),
        ({"size": "2", "page": "2"}, "a"),
        ({"size": "2", "page": "9"}, ""),
    ],
)
def test_it_filters_sorts_and_pages(
    client: Client, team: Team, many: dict[str, int], bob: User, asked: dict[str, str], expected: str
) -> None:
    client.force_login(bob)
    answer = client.get(reverse("jobs-rows", args=[team.slug]), asked).json()
    assert [row["id"] for row in answer["rows"]] == [many[name] for name in expected]
    if not {"page", "size"} & set(asked):
        assert answer["total"] == len(expected)


@pytest.mark.parametrize(
    "asked", [{"sort": "colour"}, {"state": "asleep"}, {"page": "0"}, {"size": "x"}, {"page": "²"}]
)
def test_it_names_what_cannot_be_asked(client: Client, team: Team, bob: User, asked: dict[str, str]) -> None:
    client.force_login(bob)
    answer = client.get(reverse("jobs-rows", args=[team.slug]), asked)
    problem = answer.json()["problem"]
    assert (answer.status_code, problem["path"]) == (400, next(iter(asked)))
    assert problem["remedy"]


def test_it_does_not_ask_more_for_more_rows(
    client: Client,
    team: Team,
    bob: User,
    seed_spec: dict[str, Any],
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(30):
        scene.queue(team, bob, seed_spec, name=f"job {number}")
    client.force_login(bob)
    with django_assert_max_num_queries(6):
        answer = client.get(reverse("jobs-rows", args=[team.slug]))
    assert len(json.loads(answer.content)["rows"]) == 30
