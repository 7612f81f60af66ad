"""The new-job page as its templates see it: three choices with their options, then the training settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from webapp.configure import forms
from webapp.configure.fields import Field
from webapp.configure.fit import Unfit
from webapp.configure.forms import Typed
from workers.contract import catalog
from workers.contract.catalog import Entry, Kind
from workers.contract.data import DatasetInfo
from workers.contract.layout import Layout
from workers.contract.optimizers import OPTIMIZERS
from workers.contract.problems import Problem

HEADINGS: dict[Kind, str] = {"dataset": "Dataset", "model": "Model", "strategy": "Strategy"}
OPTIMIZER_TITLES = {
    "sgd": "SGD",
    "momentum": "SGD with momentum",
    "rmsprop": "RMSprop",
    "adam": "Adam",
    "adamw": "AdamW",
}


@dataclasses.dataclass(frozen=True)
class Box:
    """A field with what is typed in it and what is wrong with that."""

    field: Field
    text: str
    problems: list[Problem]
    unfit: dict[str, str]

    @property
    def options(self) -> list[tuple[str, str, bool]]:
        """Of a closed list: value, words (with the reason where it does not fit), and whether it is disabled."""
        return [self._option(str(value)) for value in self.field.choices]

    @property
    def unknown(self) -> bool:
        """Whether a closed list holds something that it does not know; it is kept all the same."""
        return bool(self.text) and self.text not in map(str, self.field.choices)

    def _option(self, value: str) -> tuple[str, str, bool]:
        words = value.replace("_", " ")
        reason = self.unfit.get(value, "")
        return value, f"{words} ({reason})" if reason else words, bool(reason) and value != self.text


@dataclasses.dataclass(frozen=True)
class Choice:
    """One plugin to choose, with its options."""

    name: str
    title: str
    summary: str
    facts: list[str]
    chosen: bool
    unfit: str
    basic: list[Box]
    advanced: list[Box]


@dataclasses.dataclass(frozen=True)
class Column:
    """One of the three choices. `unknown` is a name that the catalog does not know (any more)."""

    kind: str
    heading: str
    choices: list[Choice]
    problems: list[Problem]
    unknown: str


@dataclasses.dataclass(frozen=True)
class Page:
    """Everything that is drawn of the form."""

    typed: Typed
    columns: list[Column]
    lengths: list[Box]
    length: str
    data: list[Box]
    rate: list[Box]
    advanced: list[Box]
    optimizers: list[Choice]
    optimizer_problems: list[Problem]
    problems: list[tuple[str, Problem]]
    name_problems: list[Problem]
    tag_problems: list[Problem]


def build(typed: Typed, problems: Iterable[Problem] = (), unfit: Unfit | None = None) -> Page:
    """The page of what is typed; each problem goes beside the field it means, and all of them on top."""
    return _Builder(typed, list(problems), unfit or {}).page()


class _Builder:
    def __init__(self, typed: Typed, problems: list[Problem], unfit: Unfit) -> None:
        self.typed = typed
        self.unfit = unfit
        self.info = forms.dataset_info(typed)
        self.placed = [(forms.field_at(problem.path, typed), problem) for problem in problems]

    def page(self) -> Page:
        fields = forms.training_fields()
        drawn = (*forms.LENGTHS, *forms.DATA, *forms.RATE)
        return Page(
            typed=self.typed,
            columns=[self.column(kind) for kind in HEADINGS],
            lengths=[self.box(fields[key]) for key in forms.LENGTHS],
            length=self.typed.get("training.length", "epochs"),
            data=[self.box(fields[key]) for key in forms.DATA],
            rate=[self.box(fields[key]) for key in forms.RATE],
            advanced=[self.box(field) for key, field in fields.items() if key not in drawn],
            optimizers=[self.optimizer(name) for name in OPTIMIZERS],
            optimizer_problems=self.at(f"{forms.OPTIMIZER}.name"),
            problems=[(_anchor(name), problem) for name, problem in self.placed],
            name_problems=self.at("name"),
            tag_problems=self.at("tags"),
        )

    def column(self, kind: Kind) -> Column:
        entries = catalog.entries(kind)
        chosen = self.typed.get(f"{kind}.name", "")
        choices = [self.choice(kind, entry, entry.name == chosen) for entry in entries.values()]
        unknown = "" if chosen in entries else chosen
        return Column(kind, HEADINGS[kind], choices, self.at(f"{kind}.name"), unknown)

    def choice(self, kind: Kind, entry: Entry, chosen: bool) -> Choice:
        boxes = [self.box(field) for field in forms.option_fields(kind, entry.name)]
        reason = self.unfit.get(f"{kind}.name", {}).get(entry.name, "")
        about = (entry.name, entry.title, entry.summary, facts(kind, entry, self.info))
        return Choice(*about, chosen, reason, *_folded(boxes))

    def optimizer(self, name: str) -> Choice:
        boxes = [self.box(field) for field in forms.optimizer_fields(name)]
        chosen = name == (self.typed.get(f"{forms.OPTIMIZER}.name") or "rmsprop")
        return Choice(name, OPTIMIZER_TITLES.get(name, name), "", [], chosen, "", *_folded(boxes))

    def box(self, field: Field) -> Box:
        text = self.typed.get(field.name, field.default)
        return Box(field, text, self.at(field.name), self.unfit.get(field.name, {}))

    def at(self, name: str) -> list[Problem]:
        return [problem for placed, problem in self.placed if placed == name]


def _folded(boxes: list[Box]) -> tuple[list[Box], list[Box]]:
    return [box for box in boxes if not box.field.advanced], [box for box in boxes if box.field.advanced]


def facts(kind: Kind, entry: Entry, info: DatasetInfo | None) -> list[str]:
    """What a plugin is under its defaults, in a few short figures; `info` is the data that a model would see."""
    if kind == "dataset":
        own: DatasetInfo = entry.module.describe(entry.options())
        kinds = f"{own.classes} classes" if own.classes else "regression"
        return [" \u00d7 ".join(map(str, own.shape)), kinds, f"{own.samples:,} samples"]
    if kind == "strategy":
        layout: Layout = entry.module.layout(entry.options())
        return [_count(layout.replicas, "replica"), _count(len(layout.processes), "process", "processes")]
    if info is None or (hasattr(entry.module, "check") and entry.module.check(entry.options(), info)):
        return [entry.name]
    parameters = entry.module.count_parameters(info.shape, info.outputs, entry.options())
    return [entry.name, _count(parameters, "parameter")]


def model_facts(typed: Typed) -> dict[str, list[str]]:
    """The figures of each model on the chosen data."""
    info = forms.dataset_info(typed)
    return {name: facts("model", entry, info) for name, entry in catalog.entries("model").items()}


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _anchor(name: str | None) -> str:
    """The element that an entry of the list of errors leads to."""
    return "field-" + name.replace(".", "-") if name else "content"
