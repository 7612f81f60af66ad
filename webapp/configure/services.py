"""The one way to submit, whoever asks: form, command line, API."""

from __future__ import annotations

from django.db import transaction

from webapp.cluster import admission
from webapp.jobs import resuming, services
from webapp.jobs.models import Job
from webapp.library import offered
from webapp.teams import access
from webapp.teams.models import Team, User
from workers.contract.fitting import check
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import JobSpec, to_json


def submit(*, team: Team, owner: User, spec: JobSpec) -> Job:
    """Queue `spec` for `team` and wake the control process on commit.

    Raises SpecInvalid with every problem, the cluster's own refusals included, and PermissionDenied when `owner` may
    only read in that team.
    """
    access.check_may_write(owner, team)
    problems = _unstorable(spec) or check(spec) or admission.problems(spec)
    problems = problems or [*offered.problems(spec, team, owner), *resuming.problems(team, spec)]
    if problems:
        raise SpecInvalid(problems)
    with transaction.atomic():
        job = services.create(team=team, owner=owner, spec=spec)
        offered.note_use(spec, job.pk)
    return job


def _unstorable(spec: JobSpec) -> list[Problem]:
    """PostgreSQL stores no NUL, neither in text nor in JSON; YAML and JSON can write one."""
    path = "name" if "\x00" in spec.name else ""
    if path or "\\u0000" in to_json(spec):
        return [Problem(path, "must not contain the NUL character", None, "Remove it")]
    return []
