"""What the library pages show, and what may be done to an item."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Count
from django.utils import timezone

from webapp.jobs.models import Job
from webapp.library.models import Item, Use
from webapp.teams.models import Team
from workers.contract import catalog
from workers.contract.catalog import Entry, Kind
from workers.contract.data import DatasetInfo
from workers.contract.files.facts import Facts
from workers.contract.library import FILE, Preview
from workers.contract.problems import Problem, SpecInvalid

GLIMPSES = Path(__file__).parent / "glimpses"
SHOWN_JOBS = 20


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the library's tables. `shape` is of one example; `width` the classes, targets or outputs."""

    kind: Kind
    name: str
    title: str
    item: int | None
    source: str
    shape: str
    width: str
    count: int | None
    bytes: int | None
    jobs: int


def rows(team: Team, *, archived: bool = False) -> dict[Kind, list[Row]]:
    """Uploaded and built-in, by kind; the built-in ones after the team's own."""
    own = _own(team, archived=archived)
    return {
        kind: [row for row in own if row.kind == kind] + ([] if archived else _built_in(kind, team))
        for kind in ("model", "dataset")
    }


def rename(item: Item, name: str) -> None:
    """Raises SpecInvalid when the name is none, or taken."""
    name = name.strip()
    if not 0 < len(name) <= 80 or any(ord(letter) < 32 for letter in name):
        raise SpecInvalid([Problem("name", "must have 1 to 80 letters", name, "Choose another")])
    item.name = name
    _save(item, "name")


def archive(item: Item, *, away: bool) -> None:
    """Put an item away or bring it back; its files stay. Raises SpecInvalid when its name has been taken meanwhile."""
    item.archived = timezone.now() if away else None
    _save(item, "archived")


def jobs_of(item: Item) -> list[Use]:
    """The newest jobs that were submitted with any version of it."""
    uses = Use.objects.filter(version__item=item).select_related("version", "job", "job__owner")
    return list(uses.order_by("-job_id")[:SHOWN_JOBS])


def built_in(kind: str, name: str) -> Entry | None:
    """A plugin that brings its own data or architecture."""
    known: Mapping[str, Entry] = {}
    if kind == "dataset" or kind == "model":  # noqa: PLR1714  a Literal is narrowed by ==
        known = catalog.entries(kind)
    entry = known.get(name)
    return entry if entry is not None and FILE not in entry.options.model_fields else None


def glimpse_of(entry: Entry) -> Preview | None:
    """The first examples of a dataset that comes with Lockstep (docs/glimpses.py); None of what hosts download."""
    file = GLIMPSES / f"{entry.name}.json"
    return Preview.model_validate_json(file.read_bytes()) if file.is_file() else None


def data_of(entry: Entry) -> DatasetInfo:
    """What a built-in dataset is under its defaults."""
    info: DatasetInfo = entry.module.describe(entry.options())
    return info


def shape_text(shape: tuple[int | None, ...]) -> str:
    """Its sizes, such as 28 by 28 by 1."""
    return " \u00d7 ".join("any" if size is None else f"{size:,}" for size in shape)


def data_shape(data: Facts) -> str:
    """One example of a file, as far as that is known before a job says what it is shown."""
    if data.kind == "text":
        return "windows of text"
    if data.columns:
        return f"{len(data.columns):,} columns"
    return shape_text(data.shape) if data.shape else f"{len(data.features):,} arrays"


def data_width(data: Facts) -> str:
    """What there is to learn."""
    if data.kind == "text":
        return f"{len(data.alphabet):,} characters" if data.alphabet else "bytes"
    return f"{len(data.classes):,} classes" if data.classes else "as chosen"


def jobs_with(team: Team, kind: str, name: str) -> list[Job]:
    """The team's newest jobs with a built-in dataset or model."""
    return list(Job.objects.of_team(team).filter(**{kind: name}).for_rows().newest_first()[:SHOWN_JOBS])


def _save(item: Item, field: str) -> None:
    try:
        with transaction.atomic():
            item.save(update_fields=[field])
    except IntegrityError:
        raise SpecInvalid([Problem("name", "is taken in this team", item.name, "Choose another")]) from None


def _own(team: Team, *, archived: bool) -> list[Row]:
    items = Item.objects.filter(team=team, archived__isnull=not archived)
    jobs = dict(items.annotate(times=Count("versions__uses", distinct=True)).values_list("pk", "times"))
    return [_row(item, jobs[item.pk]) for item in items.prefetch_related("versions")]


def _row(item: Item, jobs: int) -> Row:
    version = max(item.versions.all(), key=lambda one: one.number)
    kind: Kind = "dataset" if item.kind == "dataset" else "model"
    source = f"{catalog.find(kind, version.format).title}, v{version.number}"
    data, facts = version.data, version.facts
    if data is not None:
        return Row(
            kind, "", item.name, item.pk, source, data_shape(data), data_width(data), data.samples, data.bytes, jobs
        )
    if facts is None:
        return Row(kind, "", item.name, item.pk, source, "", "", None, version.size, jobs)
    shape = shape_text(facts.inputs)
    return Row(kind, "", item.name, item.pk, source, shape, f"{facts.outputs:,}", facts.parameters, facts.bytes, jobs)


def _built_in(kind: Kind, team: Team) -> list[Row]:
    used = Job.objects.of_team(team).values_list(kind).annotate(times=Count("id")).order_by()
    counts: dict[str, int] = {name: times for name, times in used}  # noqa: C416  values_list gives untyped tuples
    found = [entry for entry in catalog.entries(kind).values() if built_in(kind, entry.name)]
    found.sort(key=lambda entry: entry.title.casefold())
    return [_built_in_row(entry, counts.get(entry.name, 0)) for entry in found]


def _built_in_row(entry: Entry, jobs: int) -> Row:
    about = (entry.kind, entry.name, entry.title, None, "Built in")
    if entry.kind == "model":
        first = sizes(entry.name)[0]
        return Row(*about, takes(entry.name), f"as {first.title}", first.parameters, first.bytes, jobs)
    info = data_of(entry)
    return Row(*about, example_text(info), width_text(info), info.samples, memory_of(info), jobs)


@functools.cache
def takes(model: str) -> str:
    """Which kinds of built-in data a model fits under its defaults, such as `images, tables`."""
    return ", ".join(sorted({size.info.form for size in sizes(model)}))


class Size(NamedTuple):
    """What a built-in model is under its defaults on one built-in dataset; `bytes` of its weights as float32."""

    title: str
    info: DatasetInfo
    parameters: int

    @property
    def bytes(self) -> int:
        return self.parameters * 4

    @property
    def shape(self) -> str:
        return example_text(self.info)


@functools.cache
def sizes(model: str) -> list[Size]:
    """On each built-in dataset that it fits, digits first, then those that need no download."""
    entry = catalog.find("model", model)
    options, found = entry.options(), []
    for data in catalog.entries("dataset").values():
        info = data_of(data) if built_in("dataset", data.name) else None
        if info is not None and not (hasattr(entry.module, "check") and entry.module.check(options, info)):
            found.append(Size(data.title, info, entry.module.count_parameters(info, options)))
    first = [
        catalog.find("dataset", name).title for name in ("digits", *(path.stem for path in GLIMPSES.glob("*.json")))
    ]
    return sorted(found, key=lambda size: (size.title != first[0], size.title not in first, size.title))


def example_text(info: DatasetInfo) -> str:
    """What one example is: its shape, or how many columns or tokens."""
    if len(info.shape) > 1:
        return shape_text(info.shape)
    return f"{info.features:,} {'tokens' if info.tokens is not None else 'columns'}"


def width_text(info: DatasetInfo) -> str:
    """What is told of one example."""
    if info.classes:
        return f"{info.classes:,} classes"
    if info.task == "language_model":
        return f"{info.outputs:,} tokens"
    return f"{info.targets:,} target{'s' * (info.targets > 1)}"


def memory_of(info: DatasetInfo) -> int:
    """Bytes of all examples in memory, the targets left out."""
    return (info.samples + info.test_samples) * info.features * info.bytes_per_value
