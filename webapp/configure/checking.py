"""What a form or a YAML text means: the spec, and every problem that contract and cluster have with it."""

from __future__ import annotations

import dataclasses
from typing import Any

import yaml
from pydantic import ValidationError

from webapp.cluster import admission
from webapp.configure import forms
from webapp.configure.forms import Typed
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import MAX_LENGTH, JobSpec, parse


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


def check_form(typed: Typed) -> Checked:
    """What was typed into the form."""
    document = forms.spec_from_form(typed)
    checked = _check(document, document)
    return dataclasses.replace(checked, problems=[_said_of_field(problem, typed) for problem in checked.problems])


def check_yaml(text: str) -> Checked:
    """A YAML text; `document` is None when it cannot be read at all."""
    return _check(text, _plain(text))


def _check(given: str | dict[str, Any], document: dict[str, Any] | None) -> Checked:
    try:
        spec = parse(given)
    except SpecInvalid as error:
        return Checked(document, _typed(document), error.problems)
    return Checked(document, spec, admission.problems(spec))


def _plain(text: str) -> dict[str, Any] | None:
    if len(text) > MAX_LENGTH:
        return None
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):  # parse() has the words for it
        return None
    return document if isinstance(document, dict) else None


def _typed(document: dict[str, Any] | None) -> JobSpec | None:
    try:
        return JobSpec.model_validate(document)
    except ValidationError:
        return None


def _said_of_field(problem: Problem, typed: Typed) -> Problem:
    """The form asks for one length, so a missing one is that field's fault and nobody gave two."""
    length = typed.get("training.length", "epochs")
    if problem.path != "training" or length not in forms.LENGTHS:
        return problem
    return Problem(f"training.{length}", "is required", None, f"Say how many {length} to train")
