"""The jobs of a comparison, what the page must know of each, and their curves in a compact form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404
from django.urls import reverse

from webapp.jobs.models import ENDED, Job
from webapp.metrics import store
from webapp.teams.models import Team

POINTS_PER_CHART = 20_000
FEWEST, MOST = 120, 1500

Window = tuple[int | None, int | None]
"""First and last step, both included; None where there is no bound."""


def chosen(team: Team, ids: Sequence[int]) -> tuple[list[Job], list[str]]:
    """The jobs of `team` in the order of `ids`, and a sentence on those that exist no more.

    Raises Http404 when one belongs to another team.
    """
    found = Job.objects.filter(pk__in=ids).select_related("owner").in_bulk()
    if any(job.team_id != team.pk for job in found.values()):
        raise Http404("a job of this comparison is not the team's")
    missing = [str(one) for one in ids if one not in found]
    listed = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    notes = [f"There is no job {listed}; it may have been deleted."] if missing else []
    return [found[one] for one in ids if one in found], notes


def facts(job: Job) -> dict[str, Any]:
    """What charts need of a job: how to turn its steps into epochs, samples and seconds since its first step, and
    whether it took none, so that what it measured is a level to hold the others' curves against."""
    begin = job.first_step or job.started or job.created
    return {
        "id": job.pk,
        "name": job.name,
        "url": reverse("job", args=[job.pk]),
        "state": job.state,
        "live": job.state not in ENDED,
        "level": not job.trains,
        "stepsPerEpoch": job.steps_per_epoch,
        "globalBatch": job.global_batch,
        "origin": begin.timestamp(),
    }


def curves(
    jobs: Sequence[Job], names: Sequence[str], windows: Mapping[int, Window] | None = None
) -> list[dict[str, Any]]:
    """The thinned curves of `jobs`, `steps` as ints, `times` as seconds since the job's origin.

    Values have six digits, which is more than a chart shows; each job gets its share of POINTS_PER_CHART. A job that
    has a window is read within those steps only: what a zoom shows of an epoch or a minute is not the same steps in
    every job.
    """
    points = max(FEWEST, min(MOST, POINTS_PER_CHART // max(1, len(jobs))))
    origins = {job.pk: facts(job)["origin"] for job in jobs}
    groups: dict[Window, list[int]] = {}
    for pk in origins:
        groups.setdefault((windows or {}).get(pk, (None, None)), []).append(pk)
    found = (
        curve
        for (first, last), owners in groups.items()
        for curve in store.overview(owners, names=names, replica=None, first=first, last=last, points=points)
    )
    return [_curve(curve, origins[curve.key.owner]) for curve in found]


def _curve(curve: store.Curve, origin: float) -> dict[str, Any]:
    return {
        "job": curve.key.owner,
        "name": curve.key.name,
        "count": curve.count,
        "thinned": curve.thinned,
        "steps": curve.steps.tolist(),
        "times": (curve.times - origin).round(2).tolist(),
        "values": [_short(value) for value in curve.values.tolist()],
    }


def _short(value: float) -> float | str:
    if math.isfinite(value):
        return float(f"{value:.6g}")
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
