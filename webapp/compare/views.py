"""The compare page, its curves as JSON, and its table as a fragment and as CSV."""

from __future__ import annotations

import dataclasses

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.compare import panels, results, selection, services
from webapp.compare.differences import differences
from webapp.jobs.models import Job
from webapp.metrics import store
from webapp.teams.access import get_team_or_404
from webapp.teams.models import Team


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Everything an address names: `metrics` are those that may be shown, `look` says which are."""

    team: Team
    jobs: list[Job]
    look: selection.Look
    metrics: list[str]
    summaries: dict[store.Key, store.Summary]
    notes: list[str]

    def table(self) -> results.Table:
        return results.table(self.jobs, self.look.metrics, self.summaries)


def _comparison(request: HttpRequest, slug: str) -> Comparison:
    team = get_team_or_404(request.user, slug)
    asked = selection.numbers(request.GET.get("jobs", ""))
    jobs, missing = services.chosen(team, asked.ids)
    summaries = store.summaries([job.pk for job in jobs], replica=None)
    reported = {key.name for key in summaries}
    known = [*panels.comparable(), *sorted(reported - set(panels.comparable()) - panels.HELPERS)]
    default = [name for name in panels.COMPARED if name in reported or not reported]
    default += [name for name in panels.INSTEAD if name in reported]
    look = selection.look(request.GET.dict(), known, default)
    offered = [*look.metrics, *(name for name in known if name in reported and name not in look.metrics)]
    return Comparison(team, jobs, look, offered, summaries, [*asked.notes, *missing, *look.notes])


@require_safe
def compare(request: HttpRequest, slug: str) -> HttpResponse:
    found = _comparison(request, slug)
    rows = differences(found.jobs)
    context = {
        "team": found.team,
        "jobs": found.jobs,
        "ids": ",".join(str(job.pk) for job in found.jobs),
        "notes": found.notes,
        "table": found.table(),
        "settings": rows,
        "differing": sum(row.differs for row in rows),
        "axes": selection.AXES,
        "look": found.look,
        "panels": [panels.compare_panel(name) for name in found.metrics],
        "facts": [services.facts(job) for job in found.jobs],
    }
    return render(request, "compare/compare.html", context)


@require_safe
def data(request: HttpRequest, slug: str) -> JsonResponse:
    """The curves of `?jobs=` for `?metrics=`; `?windows=12:100:200,13:50:100` limits the steps of each job."""
    team = get_team_or_404(request.user, slug)
    jobs, _ = services.chosen(team, selection.numbers(request.GET.get("jobs", "")).ids)
    names = [name for name in request.GET.get("metrics", "").split(",") if name][:30]
    return JsonResponse({"series": services.curves(jobs, names, selection.windows(request.GET.get("windows", "")))})


@require_safe
def results_table(request: HttpRequest, slug: str) -> HttpResponse:
    """The table alone, for the live refresh."""
    found = _comparison(request, slug)
    return render(request, "compare/_results.html", {"table": found.table(), "team": found.team})


@require_safe
def results_csv(request: HttpRequest, slug: str) -> HttpResponse:
    found = _comparison(request, slug)
    headers = {"Content-Disposition": 'attachment; filename="comparison.csv"'}
    return HttpResponse(results.as_csv(found.table()), content_type="text/csv; charset=utf-8", headers=headers)
