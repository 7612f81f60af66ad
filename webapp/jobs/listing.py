"""The jobs table's questions: filter, sort and page, answered from indexes so that 100,000 jobs stay fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import F, Q
from django.db.models.expressions import OrderBy

from webapp.jobs.models import ACTIVE, ENDED, Job, JobQuerySet, State
from webapp.teams.models import Team
from workers.contract.problems import Problem

SORTS = ("id", "name", "state", "loss", "accuracy", "throughput", "created")
EXACT = {
    "strategy": "strategy",
    "dataset": "dataset",
    "model": "model",
    "owner": "owner__username",
}
DEFAULT_SIZE, MAX_SIZE = 50, 500
MAX_PAGE = 1_000_000


class ListingInvalid(ValueError):
    """A filter, sort or page that cannot be; `problem` names it, its value and the remedy."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


class Page(NamedTuple):
    """Jobs of one page, ready for rows, and how many there are in all."""

    jobs: list[Job]
    total: int


def listing(team: Team, asked: Mapping[str, str]) -> Page:
    """The page of `team`'s jobs that `asked` describes.

    Keys: `state` (several by comma; `active` and `ended` stand for theirs), `strategy`, `dataset`, `model`, `owner`,
    `tag`, `q` (words of the name, or `key:value` for the keys before, or `#12` for one job), `sort` (one of SORTS, `-`
    before it for descending), `page` from 1, `size`. Raises ListingInvalid.
    """
    jobs = _filtered(Job.objects.of_team(team), asked)
    size = _number(asked, "size", DEFAULT_SIZE, MAX_SIZE)
    offset = (_number(asked, "page", 1, MAX_PAGE) - 1) * size
    total = jobs.count()
    # Ids first: that answer comes from the index alone, however wide the rows are.
    ids = list(jobs.order_by(*_order(asked.get("sort") or "-id")).values_list("pk", flat=True)[offset : offset + size])
    rows = Job.objects.for_rows().in_bulk(ids)
    return Page([rows[pk] for pk in ids if pk in rows], total)


def _filtered(jobs: JobQuerySet, asked: Mapping[str, str]) -> JobQuerySet:
    for key in ("state", "tag", *EXACT):
        if asked.get(key):
            jobs = jobs.filter(_condition(key, asked[key]))
    for word in asked.get("q", "").split()[:20]:
        jobs = jobs.filter(_word(word))
    return jobs


def _word(word: str) -> Q:
    key, colon, value = word.partition(":")
    if colon and value and key in ("state", "tag", *EXACT):
        return _condition(key, value)
    if word.startswith("#") and word[1:].isdecimal() and len(word) < 19:
        return Q(pk=int(word[1:]))
    return Q(name__icontains=word)


def _condition(key: str, value: str) -> Q:
    if key == "state":
        return Q(state__in=_states(value))
    if key == "tag":
        return Q(tags__contains=f" {value} ")
    return Q(**{EXACT[key]: value})


def _states(value: str) -> list[str]:
    groups: dict[str, tuple[State, ...]] = {"active": ACTIVE, "ended": ENDED}
    states: list[str] = []
    for name in filter(None, value.split(",")):
        if name not in groups and name not in State.values:
            known = ", ".join([*State.values, *groups])
            raise ListingInvalid(Problem("state", "is not a state of a job", name, f"Known: {known}"))
        states += groups.get(name, (name,))
    return states


def _order(sort: str) -> list[OrderBy]:
    name = sort.removeprefix("-")
    if name not in SORTS:
        raise ListingInvalid(Problem("sort", "cannot be sorted by", name, f"Known: {', '.join(SORTS)}"))
    descending = sort.startswith("-")
    if name in ("id", "created"):  # ids are given in the order of creation
        return [F("pk").desc() if descending else F("pk").asc()]
    field = F(name)
    first: Any = field.desc(nulls_last=True) if descending else field.asc(nulls_last=True)
    return [first, F("pk").desc()]


def _number(asked: Mapping[str, str], key: str, default: int, largest: int) -> int:
    given = asked.get(key) or str(default)
    if not given.isdecimal() or len(given) > 9 or not 1 <= int(given) <= largest:
        raise ListingInvalid(Problem(key, f"must be a number from 1 to {largest}", given, "Leave it out"))
    return int(given)
