"""What waits for a socket becomes few frames that say the same."""

from __future__ import annotations

import json

from webapp.live.coalesce import frames
from webapp.live.hub import Item
from webapp.live.messages import Line, LogMessage, PointsMessage, SeriesPart


def points(start, values, job=1, name="loss", replica=None):
    steps = list(range(start, start + len(values)))
    part = SeriesPart(name=name, replica=replica, start=start, steps=steps, times=[1.0] * len(steps), values=values)
    return Item("points", job, PointsMessage(job=job, series=[part]).model_dump_json())


def log(first, count, job=1):
    lines = [
        Line(id=n, process="worker-0", stream="stdout", time=1.0, text=str(n)) for n in range(first, first + count)
    ]
    return Item("log", job, LogMessage(job=job, lines=lines).model_dump_json())


def test_it_joins_points_that_follow_each_other():
    (frame,) = frames([points(0, [1.0, 2.0]), points(0, [5.0], replica=1), points(2, [float("nan")])])
    whole, replica = json.loads(frame)["series"]
    assert (whole["start"], whole["steps"], whole["values"]) == (0, [0, 1, 2], [1.0, 2.0, "NaN"])
    assert (replica["replica"], replica["values"]) == (1, [5.0])


def test_it_keeps_points_apart_that_do_not_follow():
    (frame,) = frames([points(0, [1.0]), points(5, [2.0]), points(6, [3.0])])
    assert [(part["start"], part["values"]) for part in json.loads(frame)["series"]] == [(0, [1.0]), (5, [2.0, 3.0])]


def test_it_joins_log_lines_and_keeps_jobs_apart():
    found = [json.loads(frame) for frame in frames([log(1, 2), log(7, 1, job=2), log(3, 1)])]
    assert [(each["job"], [line["id"] for line in each["lines"]]) for each in found] == [(1, [1, 2, 3]), (2, [7])]


def test_it_sends_only_the_newest_header_and_row_of_a_job():
    items = [Item("row", 1, "r1"), Item("job", 1, "a"), Item("row", 2, "r2"), Item("job", 1, "b"), Item("row", 1, "r3")]
    assert frames(items) == ["b", "r3", "r2"]


def test_it_says_nothing_of_nothing():
    assert frames([]) == []
