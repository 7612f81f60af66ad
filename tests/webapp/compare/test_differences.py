"""What differs between specs."""

from __future__ import annotations

from typing import Any

from tests.webapp.compare.scene import make_job
from webapp.compare.differences import ABSENT, differences, flatten
from webapp.teams.models import Team, User


def test_it_names_every_setting_by_its_path(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    flat = flatten(make_job(team, alice, seed_spec))
    assert flat["dataset"] == "digits"
    assert flat["model.options.units"] == "[256, 128]"
    assert flat["training.optimizer"] == "rmsprop"
    assert flat["training.optimizer.learning_rate"] == "0.001"
    assert flat["replicas"] == "2"


def test_it_marks_what_differs_from_the_first_job(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    jobs = [make_job(team, alice, seed_spec), make_job(team, alice, seed_spec, training__global_batch=256)]
    differing = [row for row in differences(jobs) if row.differs]
    assert [row.path for row in differing] == ["training.global_batch"]
    assert [(cell.text, cell.differs) for cell in differing[0].cells] == [("128", False), ("256", True)]


def test_it_does_not_take_a_spelled_out_default_for_a_difference(
    team: Team, alice: User, seed_spec: dict[str, Any]
) -> None:
    jobs = [make_job(team, alice, seed_spec), make_job(team, alice, seed_spec, model__options={})]
    assert not [row.path for row in differences(jobs) if row.differs]


def test_it_shows_what_only_one_job_has(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    other = make_job(team, alice, seed_spec, model={"name": "cnn", "options": {}})
    rows = {row.path: row for row in differences([make_job(team, alice, seed_spec), other])}
    assert rows["model.options.filters"].cells[0].text == ABSENT


def test_it_still_reads_a_job_whose_plugin_is_gone(team: Team, alice: User, seed_spec: dict[str, Any]) -> None:
    job = make_job(team, alice, seed_spec, dataset={"name": "vanished", "options": {"size": 3}})
    assert flatten(job)["dataset.options.size"] == "3"
