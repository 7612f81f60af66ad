"""The new-job page as its templates see it: three choices with their options, then the training settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from webapp.configure import forms, in_file
from webapp.configure.fields import Field
from webapp.configure.fit import Unfit
from webapp.configure.forms import Typed
from webapp.library import items
from webapp.library.offered import Offered
from workers.contract import catalog
from workers.contract.catalog import Entry, Kind
from workers.contract.data import DatasetInfo
from workers.contract.layout import Layout
from workers.contract.optimizers import OPTIMIZERS
from workers.contract.problems import Problem

HEADINGS: dict[Kind, str] = {"dataset": "Dataset", "model": "Model", "strategy": "Strategy"}
OWN, BUILT_IN = "From the library", "Built in"
GROUPS = (OWN, "Images", "Tables", "Text", BUILT_IN, "")
OPTIMIZER_TITLES = {
    "sgd": "SGD",
    "momentum": "SGD with momentum",
    "rmsprop": "RMSprop",
    "adam": "Adam",
    "adamw": "AdamW",
}
KIND_TITLES = {"train": "Train", "evaluate": "Evaluate", "predict": "Predict", "export": "Export"}
EXPORT_TITLES = {"keras": ".keras, one file for Keras", "saved_model": "SavedModel, a zip for serving"}


@dataclasses.dataclass(frozen=True)
class Box:
    """A field with what is typed in it and what is wrong with that."""

    field: Field
    text: str
    problems: list[Problem]
    unfit: dict[str, str]
    words: Sequence[str] = ()
    """What it offers to be typed."""

    @property
    def listed(self) -> bool:
        """Whether words are offered, now or once another file is chosen."""
        named = self.field.name.rpartition(".")[2] in in_file.IN_FILE and self.field.widget == "text"
        return bool(self.words) or named

    @property
    def useless(self) -> str:
        """Why nothing that could be typed there would fit; empty where something does, or stands there already."""
        return self.unfit.get("", "") if self.text == self.field.default else ""

    @property
    def options(self) -> list[tuple[str, str, bool]]:
        """Of a closed list: value, words (with the reason where it does not fit), and whether it is disabled."""
        nothing = [("", "none", False)] if self.field.optional else []
        return nothing + [self._option(str(value)) for value in self.field.choices]

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
    """One thing to choose, by the `name` that is sent, with the options of its plugin."""

    name: str
    plugin: str
    title: str
    summary: str
    facts: list[str]
    chosen: bool
    unfit: str
    basic: list[Box]
    advanced: list[Box]
    group: str = ""
    heading: str = ""
    """What its options stand under."""

    @property
    def folded(self) -> bool:
        """Whether it is put out of sight: it does not fit, and nobody has chosen it."""
        return bool(self.unfit) and not self.chosen


@dataclasses.dataclass(frozen=True)
class Column:
    """One of the three choices. `unknown` is a name that the catalog does not know (any more)."""

    kind: str
    heading: str
    choices: list[Choice]
    problems: list[Problem]
    unknown: str
    plugins: list[Choice]
    """One choice of each plugin: its options are drawn once, however many files it opens."""
    uploads: bool

    @property
    def groups(self) -> list[tuple[str, list[Choice]]]:
        """The choices under their headings, in the order of GROUPS, by title; those that are folded are in none."""
        known = [name for name in GROUPS if any(choice.group == name for choice in self.choices)]
        ordered = sorted(self.choices, key=lambda choice: choice.title.casefold())
        return [(name, [one for one in ordered if one.group == name and not one.folded]) for name in known]

    @property
    def unfit(self) -> list[Choice]:
        """Those that do not fit what else is chosen."""
        return [choice for choice in self.choices if choice.folded]


@dataclasses.dataclass(frozen=True)
class Page:
    """Everything that is drawn of the form."""

    typed: Typed
    columns: list[Column]
    lengths: list[Box]
    length: str
    data: list[Box]
    rate: list[Box]
    schedules: list[tuple[str, Box]]
    """Settings of one kind of schedule, by that kind."""
    advanced: list[tuple[str, list[Box]]]
    checkpoint: list[Box]
    checkpoint_advanced: list[Box]
    resume: list[Box]
    kinds: list[tuple[str, str, bool]]
    """Value, words, and whether it is chosen."""
    kind_problems: list[Problem]
    predict: list[Box]
    exports: list[tuple[str, str, bool]]
    export_problems: list[Problem]
    optimizers: list[Choice]
    optimizer_problems: list[Problem]
    problems: list[tuple[str, Problem]]
    name_problems: list[Problem]
    tag_problems: list[Problem]

    @property
    def goes_on(self) -> bool:
        """Whether a checkpoint is named."""
        return bool(self.typed.get("resume.job") or self.typed.get("resume.checkpoint"))


def build(
    typed: Typed, problems: Iterable[Problem] = (), unfit: Unfit | None = None, files: Sequence[Offered] = ()
) -> Page:
    """The page of what is typed; each problem goes beside the field it means, and all of them on top."""
    return _Builder(typed, list(problems), unfit or {}, files).page()


class _Builder:
    def __init__(self, typed: Typed, problems: list[Problem], unfit: Unfit, files: Sequence[Offered]) -> None:
        self.typed = typed
        self.files = files
        self.unfit = unfit
        self.info = forms.dataset_info(typed)
        self.in_file = in_file.names_in_file(typed)
        self.placed = [(forms.field_at(problem.path, typed), problem) for problem in problems]

    def page(self) -> Page:
        fields = forms.training_fields()
        checkpoint, checkpoint_advanced = _folded([self.box(field) for field in forms.checkpoint_fields()])
        return Page(
            typed=self.typed,
            columns=[self.column(kind) for kind in HEADINGS],
            lengths=[self.box(fields[key]) for key in forms.LENGTHS],
            length=self.typed.get("training.length", "epochs"),
            data=[self.box(fields[key]) for key in forms.DATA],
            rate=[self.box(fields[key]) for key in forms.RATE],
            schedules=[(kind, self.box(fields[key])) for kind, keys in forms.SCHEDULES.items() for key in keys],
            advanced=self.advanced(),
            checkpoint=checkpoint,
            checkpoint_advanced=checkpoint_advanced,
            resume=[self.box(field) for field in forms.resume_fields()],
            kinds=[(kind, KIND_TITLES.get(kind, kind), kind == self.kind) for kind in forms.KINDS],
            kind_problems=self.at("kind"),
            predict=[self.box(field) for field in forms.predict_fields()],
            exports=[(f"export.{one}", EXPORT_TITLES.get(one, one), self.ticked(one)) for one in forms.EXPORTS],
            export_problems=self.at("export"),
            optimizers=[self.optimizer(name) for name in OPTIMIZERS],
            optimizer_problems=self.at(f"{forms.OPTIMIZER}.name"),
            problems=[(_anchor(name), problem) for name, problem in self.placed],
            name_problems=self.at("name"),
            tag_problems=self.at("tags"),
        )

    def advanced(self) -> list[tuple[str, list[Box]]]:
        """The rest by headings; what nobody has put under one stands last."""
        drawn = {*forms.LENGTHS, *forms.DATA, *forms.RATE, *(key for keys in forms.SCHEDULES.values() for key in keys)}
        rest = {key: field for key, field in forms.training_fields().items() if key not in drawn}
        headings = {group: heading for heading, groups in forms.ADVANCED.items() for group in groups}
        found: dict[str, list[Box]] = {heading: [] for heading in (*forms.ADVANCED, "More")}
        for key, field in rest.items():
            found[headings.get(key.partition(".")[0], "More")].append(self.box(field))
        return [(heading, boxes) for heading, boxes in found.items() if boxes]

    @property
    def kind(self) -> str:
        return self.typed.get("kind") or "train"

    def ticked(self, export: str) -> bool:
        return self.typed.get(f"export.{export}") == "on"

    def column(self, kind: Kind) -> Column:
        entries = forms.offered(kind)
        chosen = self.typed.get(f"{kind}.name", "")
        choices = [self.choice(kind, entry, entry.name == chosen) for entry in entries.values()]
        choices += [self.file(file, file.value == chosen) for file in self.files if file.kind == kind]
        unknown = "" if any(choice.chosen for choice in choices) else chosen
        plugins = {choice.plugin: choice for choice in choices}
        uploads = len(entries) < len(catalog.entries(kind))
        return Column(kind, HEADINGS[kind], choices, self.at(f"{kind}.name"), unknown, [*plugins.values()], uploads)

    def file(self, file: Offered, chosen: bool) -> Choice:
        """An uploaded dataset or model."""
        entry = catalog.find(file.kind, file.plugin)
        boxes = [self.box(field) for field in forms.option_fields(file.kind, file.plugin)]
        reason = self.unfit.get(f"{file.kind}.name", {}).get(file.value, "")
        about = (file.value, file.plugin, file.title, file.summary, _file_facts(file, entry))
        return Choice(*about, chosen, reason, *_folded(boxes), OWN, entry.title)

    def choice(self, kind: Kind, entry: Entry, chosen: bool) -> Choice:
        boxes = [self.box(field) for field in forms.option_fields(kind, entry.name)]
        reason = self.unfit.get(f"{kind}.name", {}).get(entry.name, "")
        about = (entry.name, entry.name, entry.title, entry.summary, facts(kind, entry, self.info))
        return Choice(*about, chosen, reason, *_folded(boxes), _group(kind, entry), entry.title)

    def optimizer(self, name: str) -> Choice:
        boxes = [self.box(field) for field in forms.optimizer_fields(name)]
        chosen = name == (self.typed.get(f"{forms.OPTIMIZER}.name") or "rmsprop")
        return Choice(name, name, OPTIMIZER_TITLES.get(name, name), "", [], chosen, "", *_folded(boxes))

    def box(self, field: Field) -> Box:
        text = self.typed.get(field.name, field.default)
        words = self.in_file.get(field.name, field.suggestions)
        return Box(field, text, self.at(field.name), self.unfit.get(field.name, {}), words)

    def at(self, name: str) -> list[Problem]:
        return [problem for placed, problem in self.placed if placed == name]


def _folded(boxes: list[Box]) -> tuple[list[Box], list[Box]]:
    return [box for box in boxes if not box.field.advanced], [box for box in boxes if box.field.advanced]


def _group(kind: Kind, entry: Entry) -> str:
    """The heading that it stands under: data by what one example is."""
    if kind != "dataset":
        return BUILT_IN if kind == "model" else ""
    info: DatasetInfo = entry.module.describe(entry.options())
    return info.form.capitalize()


def _file_facts(file: Offered, entry: Entry) -> list[str]:
    """What is known of an uploaded file, in a few short figures."""
    if file.kind == "dataset":
        facts = file.options["facts"]
        unit = "characters" if facts["kind"] == "text" else "samples"
        return [entry.title, f"{facts['samples']:,} {unit}"]
    found = file.options["facts"] or {}
    shape = " \u00d7 ".join("any" if size is None else str(size) for size in found.get("inputs", ()))
    return [shape, f"{found.get('outputs', 0):,} outputs", _count(found.get("parameters", 0), "parameter")]


def _data_facts(info: DatasetInfo) -> list[str]:
    kinds = f"{info.classes} classes" if info.classes else info.task.replace("_", " ")
    return [items.example_text(info), kinds, f"{info.samples:,} samples"]


def facts(kind: Kind, entry: Entry, info: DatasetInfo | None) -> list[str]:
    """What a plugin is under its defaults, in a few short figures; `info` is the data that a model would see."""
    if kind == "dataset":
        return _data_facts(entry.module.describe(entry.options()))
    if kind == "strategy":
        layout: Layout = entry.module.layout(entry.options())
        return [_count(layout.replicas, "replica"), _count(len(layout.processes), "process", "processes")]
    if info is None or (hasattr(entry.module, "check") and entry.module.check(entry.options(), info)):
        return [entry.name]
    parameters = entry.module.count_parameters(info, entry.options())
    return [entry.name, _count(parameters, "parameter")]


def model_facts(typed: Typed) -> dict[str, list[str]]:
    """The figures of each model on the chosen data."""
    info = forms.dataset_info(typed)
    return {name: facts("model", entry, info) for name, entry in forms.offered("model").items()}


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _anchor(name: str | None) -> str:
    """The element that an entry of the list of errors leads to."""
    return "field-" + name.replace(".", "-") if name else "content"
