"""The library seen by a spec: what a team may choose, the facts that go into the spec, and what may not be chosen."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from webapp.library.models import Item, Use, Version
from webapp.teams import access
from webapp.teams.models import Team, User
from workers.contract import catalog
from workers.contract.catalog import Kind
from workers.contract.library import FILE, parse_reference, references
from workers.contract.problems import Problem
from workers.contract.spec import JobSpec

KINDS: tuple[Kind, ...] = ("dataset", "model")
FACTS = "facts"
TO_LIBRARY = "Upload the file to the library, and choose it there"


@dataclasses.dataclass(frozen=True)
class Offered:
    """One item as a choice: `plugin` opens it, `options` are what the spec says of its newest version."""

    kind: Kind
    plugin: str
    title: str
    summary: str
    options: dict[str, Any]

    @property
    def value(self) -> str:
        """What the form sends."""
        return f"{self.plugin}={self.options[FILE]}"


def of_team(team: Team) -> list[Offered]:
    """The newest version of each item that the team has not put away."""
    items = Item.objects.in_use().filter(team=team).prefetch_related("versions", "versions__owner")
    return [_offer(max(item.versions.all(), key=lambda version: version.number), item) for item in items]


def complete(document: dict[str, Any], team: Team) -> dict[str, Any]:
    """The document with the facts of the files that it names, as the library has them; whatever was given goes."""
    completed = dict(document)
    for kind in KINDS:
        choice = document.get(kind)
        options = choice.get("options") if isinstance(choice, Mapping) else None
        if not isinstance(choice, Mapping) or not isinstance(options, Mapping) or not options.get(FILE):
            continue
        version = _version(team, options[FILE])
        known = {key: value for key, value in options.items() if key != FACTS}
        completed[kind] = {**choice, "options": {**_target(version), **known, **_facts(version)}}
    return completed


def titles(document: dict[str, Any], team: Team) -> dict[Kind, str]:
    """What the library calls the files that the document names; nothing for what opens none."""
    named = {kind: _mapping(_mapping(document.get(kind)).get("options")).get(FILE) for kind in KINDS}
    found = {kind: _version(team, given) for kind, given in named.items() if given}
    return {kind: version.item.name for kind, version in found.items() if version is not None}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def problems(spec: JobSpec, team: Team, user: User) -> list[Problem]:
    """Why `user` may not train with the files that the spec names."""
    found: list[Problem] = []
    for kind in KINDS:
        choice = getattr(spec, kind)
        if FILE not in catalog.find(kind, choice.name).options.model_fields:
            continue
        found += [problem.under(f"{kind}.options") for problem in _problems(choice.name, choice.options, team, user)]
    return found


def note_use(spec: JobSpec, job_id: int) -> None:
    """Remember which versions a job was submitted with."""
    for reference in references(spec).values():
        Use.objects.get_or_create(version_id=reference.version, job_id=job_id)


def facts_of(version: Version) -> dict[str, Any] | None:
    """What the spec says of it: all but the table of layers."""
    report = version.report
    if report.dataset is not None:
        return report.dataset.model_dump(mode="json")
    return None if report.model is None else report.model.model_dump(mode="json", exclude={"layers"})


def _facts(version: Version | None) -> dict[str, Any]:
    return {} if version is None else {FACTS: facts_of(version)}


def _target(version: Version | None) -> dict[str, Any]:
    """What a table is asked for unless somebody says: its last column."""
    data = version.data if version is not None else None
    return {"target": data.columns[-1].name} if data is not None and data.columns else {}


def _problems(plugin: str, options: Mapping[str, Any], team: Team, user: User) -> list[Problem]:
    given = options.get(FILE)
    if parse_reference(given) is None:
        what = "is a file of one host, which the web cannot read" if given else "is required"
        return [Problem(FILE, what, given, TO_LIBRARY)]
    version = _version(team, given)
    if version is None or version.format != plugin:
        return [Problem(FILE, "is not in the library of this team", given, TO_LIBRARY)]
    if version.item.archived is not None:
        return [Problem(FILE, f"{version.item} is archived", given, "Bring it back on its page, or choose another")]
    if options.get(FACTS) != facts_of(version):
        return [Problem(FACTS, "are not those of the file", None, "Leave them out; they are filled in")]
    if version.runs_code and not access.may_run_code(user, team):
        return [Problem(FILE, "is code, and you may not run code", given, f"Ask an owner of {team}")]
    return []


def _version(team: Team, given: object) -> Version | None:
    reference = parse_reference(given)
    if reference is None:
        return None
    found = Version.objects.filter(pk=reference.version, sha256=reference.sha256, item__team=team)
    return found.select_related("item").first()


def _offer(version: Version, item: Item) -> Offered:
    summary = f"{version.format_title}, version {version.number} by {version.owner.get_username()}."
    options = {FILE: str(version.reference), FACTS: facts_of(version)}
    kind: Kind = "dataset" if item.kind == "dataset" else "model"
    return Offered(kind, version.format, item.name, summary, options)
