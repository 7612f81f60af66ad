"""The table of results."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

from tests.webapp.compare.scene import draw, make_job
from webapp.compare.results import Table, as_csv, table
from webapp.jobs.models import Job
from webapp.metrics import store
from webapp.teams.models import Team, User


def _table(jobs: list[Job], *names: str) -> Table:
    return table(jobs, names, store.summaries([job.pk for job in jobs], replica=None))


def _figures(found: Table, row: int) -> dict[str, tuple[float | None, bool]]:
    return {column.statistic: (figure.value, figure.wins) for column, figure in found.rows[row].cells}


def test_it_gives_final_best_lowest_and_highest(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    job = make_job(team, alice, seed_spec)
    draw(job, "loss", [3.0, 1.0, 2.0])
    values = {name: value for name, (value, _) in _figures(_table([job], "loss"), 0).items()}
    assert values == {"final": 2.0, "best": 1.0, "min": 1.0, "max": 3.0}


def test_it_marks_the_lowest_loss_and_the_highest_accuracy(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    jobs = [make_job(team, alice, seed_spec) for _ in range(2)]
    draw(jobs[0], "loss", [2.0, 0.5])
    draw(jobs[1], "loss", [2.0, 0.7])
    draw(jobs[0], "accuracy", [0.1, 0.8])
    draw(jobs[1], "accuracy", [0.1, 0.9])
    assert [_figures(_table(jobs, "loss"), row)["final"][1] for row in (0, 1)] == [True, False]
    assert [_figures(_table(jobs, "accuracy"), row)["best"][1] for row in (0, 1)] == [False, True]


def test_it_names_no_winner_among_equals(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    jobs = [make_job(team, alice, seed_spec) for _ in range(2)]
    for job in jobs:
        draw(job, "loss", [1.0])
    assert not any(figure.wins for row in _table(jobs, "loss").rows for _, figure in row.cells)


def test_it_lets_a_nan_win_nothing(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    jobs = [make_job(team, alice, seed_spec) for _ in range(3)]
    draw(jobs[0], "loss", [1.0, math.nan])
    draw(jobs[1], "loss", [1.0, 0.5])
    draw(jobs[2], "loss", [1.0, 0.6])
    found = _table(jobs, "loss")
    final, wins = _figures(found, 0)["final"]
    assert final is not None and math.isnan(final) and not wins
    assert _figures(found, 1)["final"][1]


def test_it_averages_the_throughput(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    job = make_job(team, alice, seed_spec)
    draw(job, "throughput", [100.0, 300.0])
    row = _table([job]).rows[0]
    assert row.throughput == 200.0
    assert row.seconds is not None and 59 < row.seconds < 61


def test_it_leaves_blank_what_was_never_reported(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    assert _figures(_table([make_job(team, alice, seed_spec)], "loss"), 0)["final"] == (None, False)


def test_it_exports_no_formula(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    job = make_job(team, alice, {**seed_spec, "name": '=HYPERLINK("http://evil")'})
    rows = list(csv.reader(io.StringIO(as_csv(_table([job], "loss")))))
    assert rows[1][1] == '\'=HYPERLINK("http://evil")'
    assert rows[0][5] == "loss final"
