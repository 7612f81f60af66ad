"""Series and logs as JSON: exact shapes, filters, strangers and bad queries."""

from __future__ import annotations

import math

import pytest
from django.urls import reverse

from tests.webapp.jobs.scene import queue
from webapp.ingest.models import LogLine
from webapp.metrics import store

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(team, alice, seed_spec):
    return queue(team, alice, seed_spec)


@pytest.fixture
def page(client, bob):
    client.force_login(bob)
    return client


def append(job, values, name="loss", replica=None):
    steps = list(range(len(values)))
    points = {"steps": steps, "times": [1.75e9 + step for step in steps], "values": values}
    store.append([store.batch(owner=job.pk, name=name, replica=replica, **points)])


def write(job, count, process="worker-0", stream="stdout", text="line {}"):
    rows = [
        LogLine(job=job, attempt=1, process=process, stream=stream, time=1.5, text=text.format(number))
        for number in range(count)
    ]
    return [row.pk for row in LogLine.objects.bulk_create(rows)]


@pytest.mark.parametrize("name", ["job-series", "job-logs"])
def test_it_is_404_to_a_stranger_and_the_login_page_to_anybody(client, job, charlie, name):
    address = reverse(name, args=[job.pk])
    assert client.get(address).status_code == 302
    client.force_login(charlie)
    assert client.get(address).status_code == 404
    assert client.get(reverse(name, args=[job.pk + 99])).status_code == 404
    assert client.post(address).status_code == 405


def test_it_answers_series_in_the_shape_of_the_contract(page, job):
    append(job, [1.0, math.nan, -math.inf])
    append(job, [50.0], name="utilization", replica=1)
    answer = page.get(reverse("job-series", args=[job.pk])).json()
    loss, utilization = answer["series"]
    assert answer["job"] == job.pk
    assert loss == {
        "name": "loss",
        "replica": None,
        "count": 3,
        "start": 0,
        "steps": [0, 1, 2],
        "times": [1.75e9, 1.75e9 + 1, 1.75e9 + 2],
        "values": [1.0, "NaN", "-Infinity"],
        "thinned": False,
    }
    assert (utilization["name"], utilization["replica"]) == ("utilization", 1)


def test_it_thins_zooms_and_chooses_names(page, job):
    append(job, [math.sin(step / 50) for step in range(5000)])
    append(job, [1.0], name="accuracy")
    address = reverse("job-series", args=[job.pk])
    (loss,) = page.get(address, {"names": "loss", "points": 100}).json()["series"]
    assert loss["thinned"]
    assert len(loss["steps"]) <= 100
    assert loss["count"] == 5000
    (loss,) = page.get(address, {"names": "loss", "first": 10, "last": 12}).json()["series"]
    assert (loss["steps"], loss["thinned"]) == ([10, 11, 12], False)


def test_it_answers_everything_since_an_index(page, job):
    append(job, [float(step) for step in range(5000)])
    append(job, [1.0, 2.0], name="utilization", replica=0)
    query = {"since": "loss:4998,utilization.0:1,unknown:3"}
    loss, utilization = page.get(reverse("job-series", args=[job.pk]), query).json()["series"]
    assert (loss["start"], loss["values"], loss["count"]) == (4998, [4998.0, 4999.0], 5000)
    assert (utilization["replica"], utilization["start"], utilization["values"]) == (0, 1, [2.0])


def test_it_answers_no_series_of_a_job_that_has_none(page, job):
    assert page.get(reverse("job-series", args=[job.pk])).json() == {"job": job.pk, "series": []}


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("job-series", "points", "many"),
        ("job-series", "points", "0"),
        ("job-series", "points", "1000000000"),
        ("job-series", "first", "1.5"),
        ("job-series", "last", "9" * 40),
        ("job-series", "since", "loss"),
        ("job-series", "since", "loss:-1"),
        ("job-logs", "limit", "0"),
        ("job-logs", "after", "x"),
        ("job-logs", "before", "-1"),
        ("job-logs", "stream", "stdin"),
        ("job-logs", "q", "\0"),
    ],
)
def test_it_names_the_field_of_a_bad_query(page, job, name, field, value):
    answer = page.get(reverse(name, args=[job.pk]), {field: value})
    assert answer.status_code == 400
    assert answer.json()["field"] == field
    assert answer.json()["error"].startswith(f"{field}: ")


def test_it_answers_the_newest_lines_and_pages_both_ways(page, job):
    ids = write(job, 25)
    address = reverse("job-logs", args=[job.pk])
    newest = page.get(address, {"limit": 10}).json()
    assert [line["id"] for line in newest["lines"]] == ids[15:]
    assert (newest["first"], newest["last"], newest["more"]) == (ids[15], ids[24], True)
    assert newest["lines"][0] == {
        "id": ids[15], "process": "worker-0", "stream": "stdout", "time": 1.5, "text": "line 15"
    }  # fmt: skip
    older = page.get(address, {"before": newest["first"], "limit": 20}).json()
    assert ([line["id"] for line in older["lines"]], older["more"]) == (ids[:15], False)
    newer = page.get(address, {"after": ids[3], "limit": 4}).json()
    assert ([line["id"] for line in newer["lines"]], newer["more"]) == (ids[4:8], True)


def test_it_filters_lines_by_process_stream_and_text(page, job):
    write(job, 3)
    write(job, 2, process="worker-1", stream="stderr", text="Warning {}: 100%_done")
    address = reverse("job-logs", args=[job.pk])

    def texts(**query):
        return [line["text"] for line in page.get(address, query).json()["lines"]]

    assert len(texts(process="worker-1")) == 2
    assert len(texts(stream="stdout")) == 3
    assert texts(q="warning 1") == ["Warning 1: 100%_done"]
    assert texts(q="0%_d") == ["Warning 0: 100%_done", "Warning 1: 100%_done"]
    assert texts(q="0_%") == []
    assert texts(process="worker-9") == []


def test_it_shows_no_line_of_another_job(page, job, team, alice, seed_spec):
    write(queue(team, alice, seed_spec), 3)
    assert page.get(reverse("job-logs", args=[job.pk])).json() == {
        "lines": [], "first": None, "last": None, "more": False
    }  # fmt: skip


def test_it_needs_few_queries(page, job, django_assert_max_num_queries):
    for number in range(30):
        append(job, [1.0] * 600, name=f"metric_{number}")
    with django_assert_max_num_queries(7):
        page.get(reverse("job-series", args=[job.pk]))
