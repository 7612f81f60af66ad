"""The compare page, its data, its table and its file."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from django.test import Client

from tests.webapp.compare.scene import draw, make_job
from webapp.jobs.models import Job
from webapp.teams.models import Team, User

ADDRESSES = ["", "data", "table", "table.csv"]


@pytest.fixture
def jobs(team: Team, alice: User, seed_spec: dict[str, Any]) -> list[Job]:
    made = [make_job(team, alice, seed_spec), make_job(team, alice, seed_spec, training__seed=2)]
    for number, job in enumerate(made):
        draw(job, "loss", [3.0 - number, 1.0, 0.5 + number])
        draw(job, "throughput", [100.0, 200.0, 300.0])
    return made


def test_each_job_is_read_within_its_own_window(client: Client, alice: User, jobs: list[Job]) -> None:
    client.force_login(alice)
    first, second = (job.pk for job in jobs)
    windows = f"{first}:2:2,{second}:2:9,nonsense,{first}:x:y"
    answer = client.get(f"/t/vision/compare/data?jobs={_ids(jobs)}&metrics=loss&windows={windows}").json()
    assert {one["job"]: one["steps"] for one in answer["series"]} == {first: [2], second: [2, 3]}


def _ids(jobs: list[Job]) -> str:
    return ",".join(str(job.pk) for job in jobs)


@pytest.mark.parametrize("address", ADDRESSES)
def test_it_sends_an_anonymous_visitor_to_the_login(client: Client, team: Team, address: str) -> None:
    response = client.get(f"/t/vision/compare/{address}")
    assert response.status_code == 302 and response["Location"].startswith("/login/")


@pytest.mark.parametrize("address", ADDRESSES)
def test_it_is_not_there_for_a_stranger(client: Client, charlie: User, jobs: list[Job], address: str) -> None:
    client.force_login(charlie)
    assert client.get(f"/t/vision/compare/{address}?jobs={_ids(jobs)}").status_code == 404


@pytest.mark.parametrize("address", ADDRESSES)
def test_it_does_not_show_another_teams_jobs(client: Client, charlie: User, jobs: list[Job], address: str) -> None:
    client.force_login(charlie)
    assert client.get(f"/t/speech/compare/{address}?jobs={jobs[0].pk}").status_code == 404


def test_it_is_open_to_a_reader(client: Client, rita: User, jobs: list[Job]) -> None:
    client.force_login(rita)
    assert client.get(f"/t/vision/compare/?jobs={_ids(jobs)}").status_code == 200


def test_it_says_how_to_choose_when_nothing_is_chosen(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert "Choose jobs to compare" in client.get("/t/vision/compare/").text


def test_it_says_in_words_what_it_left_out(client: Client, alice: User, jobs: list[Job]) -> None:
    client.force_login(alice)
    text = client.get(f"/t/vision/compare/?jobs={_ids(jobs)},{jobs[0].pk},999999,what").text
    assert "There is no job 999999" in text
    assert "more than once" in text
    assert "“what” is not a job number" in text


def test_it_escapes_names_in_page_and_data(client: Client, alice: User, team: Team, seed_spec: dict[str, Any]) -> None:
    job = make_job(team, alice, {**seed_spec, "name": "</script><b>bold"})
    client.force_login(alice)
    text = client.get(f"/t/vision/compare/?jobs={job.pk}").text
    assert "<b>bold" not in text


def test_it_shows_the_default_metrics_that_were_reported(client: Client, alice: User, jobs: list[Job]) -> None:
    client.force_login(alice)
    response = client.get(f"/t/vision/compare/?jobs={_ids(jobs)}")
    assert response.context["look"].metrics == ("loss", "throughput")


def test_it_shows_the_differing_setting(client: Client, alice: User, jobs: list[Job]) -> None:
    client.force_login(alice)
    rows = client.get(f"/t/vision/compare/?jobs={_ids(jobs)}").context["settings"]
    assert [row.path for row in rows if row.differs] == ["training.seed"]


def test_it_serves_the_curves_relative_to_each_start(client: Client, alice: User, jobs: list[Job]) -> None:
    client.force_login(alice)
    answer = client.get(f"/t/vision/compare/data?jobs={_ids(jobs)}&metrics=loss").json()["series"]
    assert [one["job"] for one in answer] == [job.pk for job in jobs]
    assert answer[0] == {
        "job": jobs[0].pk, "name": "loss", "count": 3, "thinned": False,
        "steps": [1, 2, 3], "times": [1.0, 2.0, 3.0], "values": [3.0, 1.0, 0.5],
    }  # fmt: skip


def test_it_sends_what_is_no_number_as_a_word(client: Client, alice: User, jobs: list[Job]) -> None:
    draw(jobs[0], "val_loss", [math.nan, math.inf, -math.inf])
    client.force_login(alice)
    response = client.get(f"/t/vision/compare/data?jobs={jobs[0].pk}&metrics=val_loss")
    assert json.loads(response.text)["series"][0]["values"] == ["NaN", "Infinity", "-Infinity"]


def test_it_thins_long_curves_and_keeps_a_spike(client: Client, alice: User, jobs: list[Job]) -> None:
    values = [1.0] * 20_000
    values[12_345] = 50.0
    draw(jobs[0], "val_loss", values)
    client.force_login(alice)
    found = client.get(f"/t/vision/compare/data?jobs={jobs[0].pk}&metrics=val_loss").json()["series"][0]
    assert found["thinned"] and found["count"] == 20_000
    assert len(found["steps"]) <= 1500
    assert 50.0 in found["values"]


def test_it_offers_the_table_as_a_file(client: Client, alice: User, jobs: list[Job]) -> None:
    client.force_login(alice)
    response = client.get(f"/t/vision/compare/table.csv?jobs={_ids(jobs)}&metrics=loss")
    assert response["Content-Type"].startswith("text/csv")
    assert "attachment" in response["Content-Disposition"]
    assert len(response.text.strip().splitlines()) == 3


def test_it_marks_the_winner_in_the_table(client: Client, alice: User, jobs: list[Job]) -> None:
    client.force_login(alice)
    text = client.get(f"/t/vision/compare/table?jobs={_ids(jobs)}&metrics=loss").text
    winners = re.findall(r'<tr data-job="(\d+)">.*?</tr>', text, re.S)
    assert winners == [str(job.pk) for job in jobs]
    first = text.split(f'<tr data-job="{jobs[0].pk}">')[1].split("</tr>")[0]
    assert "★" in first and "0.5000" in first


def test_it_asks_the_database_as_often_for_a_hundred_jobs_as_for_two(
    client: Client,
    alice: User,
    team: Team,
    seed_spec: dict[str, Any],
    jobs: list[Job],
    django_assert_max_num_queries: Any,
) -> None:
    many = jobs + [make_job(team, alice, seed_spec) for _ in range(98)]
    for job in many[2:]:
        draw(job, "loss", [1.0, 0.5])
    client.force_login(alice)
    with django_assert_max_num_queries(12):
        assert client.get(f"/t/vision/compare/?jobs={_ids(many)}").status_code == 200
    with django_assert_max_num_queries(8):
        assert len(client.get(f"/t/vision/compare/data?jobs={_ids(many)}&metrics=loss").json()["series"]) == 100
