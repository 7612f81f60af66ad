"""What differs between the specs of several jobs: every setting as a dotted path against each job's value."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from webapp.jobs.models import Job
from workers.contract import catalog
from workers.contract.problems import SpecInvalid

SKIPPED = {"version", "name", "tags"}
ABSENT = "—"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One job's value; `differs` from the base, which is the first job."""

    text: str
    differs: bool


@dataclasses.dataclass(frozen=True)
class Setting:
    """One row of the table; `differs` when not all jobs have the same value."""

    path: str
    cells: tuple[Cell, ...]
    differs: bool


def differences(jobs: Sequence[Job]) -> list[Setting]:
    """All settings of `jobs` in the order of the specs, the first job as the base of every row."""
    flat = [flatten(job) for job in jobs]
    paths = list(dict.fromkeys(path for one in flat for path in one))
    return [_setting(path, [one.get(path, ABSENT) for one in flat]) for path in sorted(paths, key=_place)]


def flatten(job: Job) -> dict[str, str]:
    """Every setting of a job by its dotted path, defaults of its plugins included, and its number of replicas."""
    spec = {name: value for name, value in job.spec_json.items() if name not in SKIPPED}
    for kind in catalog.FOLDERS:
        if isinstance(spec.get(kind), dict):
            spec[kind] = {**spec[kind], "options": _options(kind, spec[kind])}
    found: dict[str, str] = {}
    _walk("", spec, found)
    found["replicas"] = str(job.replicas)
    tags = job.spec_json.get("tags") or []
    found["tags"] = ", ".join(map(str, tags)) or ABSENT
    return found


def _options(kind: catalog.Kind, choice: dict[str, Any]) -> dict[str, Any]:
    # A default that one spec spells out and another leaves away is no difference; a plugin that is gone has none.
    given: dict[str, Any] = choice.get("options") or {}
    try:
        return catalog.find(kind, str(choice.get("name"))).parse(given).model_dump(mode="json")
    except SpecInvalid:
        return given


def _walk(prefix: str, value: object, found: dict[str, str]) -> None:
    if isinstance(value, dict):
        for name, entry in value.items():
            _walk(f"{prefix}.{name}" if prefix else str(name), entry, found)
    elif value is not None:
        found[prefix.removesuffix(".name")] = _text(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.10g}"
    return json.dumps(value, ensure_ascii=False)


def _setting(path: str, texts: list[str]) -> Setting:
    cells = tuple(Cell(text, text != texts[0]) for text in texts)
    return Setting(path, cells, any(cell.differs for cell in cells))


_ORDER = ("dataset", "model", "strategy", "replicas", "training", "kind", "tags")


def _place(path: str) -> int:
    top = path.split(".", 1)[0]
    return _ORDER.index(top) if top in _ORDER else len(_ORDER)
