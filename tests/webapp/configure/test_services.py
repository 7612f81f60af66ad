from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied

from tests.webapp.cluster.hosts import hear
from webapp.configure.services import submit
from webapp.jobs.models import Job, State
from webapp.teams.models import Team, User
from workers.contract.problems import SpecInvalid
from workers.contract.spec import JobSpec, parse


def test_it_queues_a_spec_that_the_cluster_can_honour(team: Team, bob: User, seed_spec: dict[str, Any]) -> None:
    hear("h1", cpus=2)
    job = submit(team=team, owner=bob, spec=parse(seed_spec))
    assert (job.state, job.owner, job.team) == (State.QUEUED, bob, team)


def test_it_refuses_what_the_cluster_cannot_and_stores_nothing(
    team: Team, bob: User, seed_spec: dict[str, Any]
) -> None:
    hear("h1", cpus=1, unavailable={"digits": "gone"})
    with pytest.raises(SpecInvalid) as refused:
        submit(team=team, owner=bob, spec=parse(seed_spec))
    assert [problem.path for problem in refused.value.problems] == ["dataset.name", "strategy.options"]
    assert not Job.objects.exists()


def test_it_checks_a_spec_that_nobody_has_checked(team: Team, bob: User, seed_spec: dict[str, Any]) -> None:
    with pytest.raises(SpecInvalid, match="no model of this name"):
        submit(team=team, owner=bob, spec=JobSpec.model_validate({**seed_spec, "model": {"name": "oracle"}}))


def test_it_refuses_readers_and_strangers(team: Team, rita: User, charlie: User, seed_spec: dict[str, Any]) -> None:
    for user in (rita, charlie):
        with pytest.raises(PermissionDenied):
            submit(team=team, owner=user, spec=parse(seed_spec))


def test_it_refuses_a_character_that_no_database_stores(team: Team, bob: User, seed_spec: dict[str, Any]) -> None:
    with pytest.raises(SpecInvalid, match="NUL") as refused:
        submit(team=team, owner=bob, spec=JobSpec.model_validate({**seed_spec, "name": "a\x00b"}))
    assert refused.value.problems[0].path == "name"
