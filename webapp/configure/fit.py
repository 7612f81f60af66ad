"""Which other choices would not fit the ones already made, and why, in words: shown disabled before anybody tries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webapp.cluster import admission
from webapp.configure import forms
from webapp.configure.forms import Typed
from workers.contract import catalog
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import Choice, JobSpec, check, parse

Unfit = dict[str, dict[str, str]]
"""By the name of a field: each value that does not fit, with the reason."""


def unfit(typed: Typed) -> Unfit:
    """What does not fit beside what is typed; empty while that itself is not a spec."""
    spec = _spec(typed)
    if spec is None:
        return {}
    found: Unfit = {}
    for field, value, reason in (*_plugins(spec), *_strategy_values(spec, typed)):
        found.setdefault(field, {})[value] = reason
    return found


def _spec(typed: Typed) -> JobSpec | None:
    """The spec, also when only its batch or its model is at fault: exactly then another choice is looked for."""
    document = forms.spec_from_form(typed)
    try:
        return parse(document)
    except SpecInvalid as error:
        if any(not problem.path.startswith(("model", "training.global_batch")) for problem in error.problems):
            return None
    try:
        return JobSpec.model_validate(document)
    except ValueError:
        return None


def _plugins(spec: JobSpec) -> Iterator[tuple[str, str, str]]:
    for name in catalog.entries("dataset"):
        other = _with(spec, "dataset", name, {})
        for problem in admission.problems(other) if other.dataset.name != spec.dataset.name else ():
            if problem.path == "dataset.name":
                yield "dataset.name", name, f"{problem.message}. {problem.remedy}"
    for name, entry in catalog.entries("model").items():
        if hasattr(entry.module, "check"):
            for problem in entry.module.check(entry.options(), spec.dataset_info):
                if problem.path == "name":
                    yield "model.name", name, problem.message
    for name, entry in catalog.entries("strategy").items():
        # One that may run anywhere can be mended by its options; one that is bound to a kind of device cannot.
        bound = all(shape.kind != "auto" for shape in entry.module.layout(entry.options()).processes)
        for problem in _strategy_problems(_with(spec, "strategy", name, {})) if bound else ():
            yield "strategy.name", name, problem.message


def _strategy_values(spec: JobSpec, typed: Typed) -> Iterator[tuple[str, str, str]]:
    """Values of closed lists of the chosen strategy that would bring a problem that is not there now."""
    current = {problem.message for problem in _strategy_problems(spec)}
    chosen = spec.strategy.options
    for field in forms.option_fields("strategy", spec.strategy.name):
        key = field.path.rpartition(".")[2]
        for value in field.choices:
            if str(value) == typed.get(field.name):
                continue
            other = _with(spec, "strategy", spec.strategy.name, {**chosen, key: value})
            for problem in _strategy_problems(other):
                if problem.message not in current:
                    yield field.name, str(value), problem.message


def _strategy_problems(spec: JobSpec) -> list[Problem]:
    own = [problem for problem in check(spec) if problem.path.startswith("strategy")]
    return own or [problem for problem in admission.problems(spec) if problem.path.startswith("strategy")]


def _with(spec: JobSpec, kind: catalog.Kind, name: str, options: dict[str, Any]) -> JobSpec:
    return spec.model_copy(update={kind: Choice(name=name, options=options)})
