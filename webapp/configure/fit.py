"""Which other choices would not fit the ones already made, and why, in words: shown disabled before anybody tries."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from webapp.cluster import admission
from webapp.configure import forms
from webapp.configure.forms import Typed
from webapp.library.offered import Offered
from workers.contract import catalog, keeping
from workers.contract.fitting import check
from workers.contract.keeping import Checkpoint
from workers.contract.metrics import Validated
from workers.contract.objectives import objective_problems
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.schedule import EarlyStopping
from workers.contract.selftest import aggregations, case_of, precisions
from workers.contract.spec import Choice, JobSpec, Training, parse

Unfit = dict[str, dict[str, str]]
"""By the name of a field: each value that does not fit, with the reason."""


def unfit(typed: Typed, files: Sequence[Offered] = ()) -> Unfit:
    """What does not fit beside what is typed; empty while that itself is not a spec."""
    spec = _spec(typed)
    if spec is None:
        return {}
    found: Unfit = {}
    found_by = (_plugins(spec), _files(spec, files), _strategy_values(spec, typed), _of_the_task(spec))
    for field, value, reason in itertools.chain(_tried(spec), _training_values(spec), *found_by):
        found.setdefault(field, {})[value] = reason
    return found


def _spec(typed: Typed) -> JobSpec | None:
    """The spec, also when it is at fault elsewhere than in dataset and strategy: just then others are looked for."""
    document = forms.spec_from_form(typed)
    try:
        return parse(document)
    except SpecInvalid as error:
        if any(problem.path.startswith(("dataset", "strategy")) for problem in error.problems):
            return None
    plain = {"training": {"epochs": 1}, "checkpoint": None, "name": "x", "tags": (), "export": ("keras",)}
    for changes in ({}, plain, {**plain, "model": {"name": document["model"]["name"]}}):
        try:
            spec = JobSpec.model_validate({**document, **changes})
        except ValueError:
            continue
        if _is_known(spec):
            return spec
    return None


def _is_known(spec: JobSpec) -> bool:
    """Whether its choices can be asked what they are."""
    try:
        _ = (spec.dataset_info, spec.layout, spec.options_of("model"))
    except SpecInvalid:
        return False
    return True


def _tried(spec: JobSpec) -> Iterator[tuple[str, str, str]]:
    """What failed in the self-test of every host that could run it: one choice changed, all others as they are."""
    known, mine = admission.known(), case_of(spec)
    others = [
        ("strategy.name", name, _with(spec, "strategy", name, {}), mine._replace(strategy=name))
        for name in catalog.entries("strategy")
    ]
    others += [("training.aggregation.method", one, spec, mine._replace(aggregation=one)) for one in aggregations()]
    others += [("training.mixed_precision", one, spec, mine._replace(precision=one)) for one in precisions()]
    others += [("training.jit", "on", spec, mine._replace(jit=True))]
    for field, value, other, case in others:
        for problem in admission.tried_problems(other, known, case) if case != mine else ():
            yield field, value, problem.message


def _training_values(spec: JobSpec) -> Iterator[tuple[str, str, str]]:
    """Values of closed lists that strategy, model and data forbid."""
    added_up = spec.training.aggregation.model_copy(update={"method": "local", "micro_batches": 2})
    changes: list[tuple[str, str, dict[str, Any]]] = [
        ("training.aggregation.method", "local", {"aggregation": added_up}),
        ("training.jit", "on", {"jit": True}),
    ]
    for key in ("mixed_precision", "sharding"):
        values = typing.get_args(Training.model_fields[key].annotation)
        changes += [(f"training.{key}", value, {key: value}) for value in values]
    for field, value, change in changes:
        for problem in check(_training(spec, **change)):
            if problem.path == field:
                yield field, value, problem.message


def _plugins(spec: JobSpec) -> Iterator[tuple[str, str, str]]:
    others = [name for name in forms.offered("dataset") if name != spec.dataset.name]
    for problem in admission.dataset_problems(others):
        yield "dataset.name", problem.value, f"{problem.message}. {problem.remedy}"
    for name, entry in forms.offered("model").items():
        if hasattr(entry.module, "check"):
            for problem in entry.module.check(entry.options(), spec.dataset_info):
                if problem.path == "name":
                    yield "model.name", name, problem.message
    for name, entry in catalog.entries("strategy").items():
        # One that may run anywhere can be mended by its options; one that is bound to a kind of device cannot.
        bound = all(shape.kind != "auto" for shape in entry.module.layout(entry.options()).processes)
        other = _with(spec, "strategy", name, {})
        for problem in _strategy_problems(other) if bound else check(other):
            if bound or problem.path == "strategy.name":
                yield "strategy.name", name, problem.message


def _files(spec: JobSpec, files: Sequence[Offered]) -> Iterator[tuple[str, str, str]]:
    """Uploaded models beside the data that is chosen."""
    for file in files:
        entry = catalog.find(file.kind, file.plugin)
        if file.kind == "model" and hasattr(entry.module, "check"):
            for problem in entry.module.check(entry.parse(file.options), spec.dataset_info):
                yield "model.name", file.value, problem.message


def _of_the_task(spec: JobSpec) -> Iterator[tuple[str, str, str]]:
    """Settings of the loss and metrics that what is trained does not have; by an empty value where none would do."""
    tried: dict[str, Any] = {"label_smoothing": 0.1, "class_weights": {0: 1.0}}
    for key, value in tried.items():
        for problem in objective_problems(_training(spec, **{key: value})):
            if problem.path == f"training.{key}":
                yield problem.path, "", problem.message
    for metric in typing.get_args(Validated):
        for problem in keeping.check(Checkpoint(every_steps=1, best=metric), spec.task, spec.training.validation_split):
            yield problem.path, metric, problem.message
        for problem in objective_problems(_training(spec, early_stopping=EarlyStopping(patience=1, metric=metric))):
            if problem.path == "training.early_stopping.metric":
                yield problem.path, metric, problem.message


def _training(spec: JobSpec, **changes: Any) -> JobSpec:
    return spec.model_copy(update={"training": spec.training.model_copy(update=changes)})


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
