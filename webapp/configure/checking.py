"""What a form or a YAML text means: the spec, and every problem that contract and cluster have with it."""

from __future__ import annotations

import dataclasses
from typing import Any

import yaml
from pydantic import ValidationError

from webapp.cluster import admission
from webapp.configure import forms
from webapp.configure.forms import Typed
from webapp.jobs import resuming
from webapp.library import offered
from webapp.teams.models import Team
from workers.contract.document import read
from workers.contract.fitting import check
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import Choice, JobSpec, parse


@dataclasses.dataclass(frozen=True)
class Checked:
    """`document` is what was typed as plain types; `spec` is there as soon as its fields are of the right kind."""

    document: dict[str, Any] | None
    spec: JobSpec | None
    problems: list[Problem]

    @property
    def yaml(self) -> str:
        """The document as people read it, faults and all."""
        if self.spec is not None:
            return self.spec.to_yaml()
        return yaml.safe_dump(
            self.document or {}, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
        )


def check_form(typed: Typed, team: Team) -> Checked:
    """What was typed into the form, for a job of `team`."""
    document = forms.spec_from_form(typed)
    checked = _check(document, team)
    said = [one for problem in checked.problems for one in _said_of_fields(problem, typed)]
    return dataclasses.replace(checked, problems=said)


def check_yaml(text: str, team: Team) -> Checked:
    """A YAML text for a job of `team`, the library's facts filled in; `document` is None when it cannot be read."""
    try:
        document = offered.complete(read(text), team)
    except SpecInvalid as error:
        return Checked(None, None, error.problems)
    return _check(document, team)


def _check(document: dict[str, Any], team: Team) -> Checked:
    try:
        spec = parse(document)
    except SpecInvalid as error:
        spec_so_far = _typed(document)
        return Checked(document, spec_so_far, error.problems + _further(spec_so_far, error.problems))
    return Checked(document, spec, admission.problems(spec) + resuming.problems(team, spec))


def _further(spec: JobSpec | None, problems: list[Problem]) -> list[Problem]:
    """What else is wrong where the contract stopped: a faulty model or batch hides nothing of the rest."""
    if spec is None or any(not problem.path.startswith(("model", "training.global_batch")) for problem in problems):
        return []
    further = admission.problems(spec)
    if any(problem.path.startswith("model.options") for problem in problems):
        other = spec.model_copy(update={"model": Choice(name=spec.model.name)})
        further += [problem for problem in check(other) if not problem.path.startswith("model")]
    return further


def _typed(document: dict[str, Any]) -> JobSpec | None:
    try:
        return JobSpec.model_validate(document)
    except ValidationError:
        return None


def _said_of_fields(problem: Problem, typed: Typed) -> list[Problem]:
    """The form asks for one length, so a missing one is that field's fault; so is what a step schedule lacks."""
    length = typed.get("training.length", "epochs")
    if problem.path == "training" and length in forms.LENGTHS:
        return [Problem(f"training.{length}", "is required", None, f"Say how many {length} to train")]
    if problem.path == "training.schedule":
        fields = [
            forms.training_fields()[key] for key in forms.SCHEDULES.get(typed.get(f"{problem.path}.kind", ""), ())
        ]
        empty = [field for field in fields if not typed.get(field.name)]
        return [Problem(field.path, "is required", None, field.description) for field in empty] or [problem]
    return [problem]
