"""The jobs of a comparison, what the page must know of each, and their curves in a compact form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from django.http import Http404
from django.urls import reverse

from webapp.jobs.models import ENDED, Job
from webapp.metrics import store
from webapp.teams.models import Team

POINTS_PER_CHART = 20_000
FEWEST, MOST = 120, 1500


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
    """What charts need of a job: how to turn its steps into epochs, samples and seconds since its first step."""
    begin = job.first_step or job.started or job.created
    return {
        "id": job.pk,
        "name": job.name,
        "url": reverse("job", args=[job.pk]),
        "state": job.state,
        "live": job.state not in ENDED,
        "stepsPerEpoch": job.steps_per_epoch,
        "globalBatch": job.global_batch,
        "origin": begin.timestamp(),
    }


def curves(jobs: Sequence[Job], names: Sequence[str]) -> list[dict[str, Any]]:
    """The thinned curves of `jobs`, `steps` as ints, `times` as seconds since the job's origin.

    Values have six digits, which is more than a chart shows; each job gets its share of POINTS_PER_CHART.
    """
    points = max(FEWEST, min(MOST, POINTS_PER_CHART // max(1, len(jobs))))
    origins = {job.pk: facts(job)["origin"] for job in jobs}
    found = store.overview(list(origins), names=names, replica=None, points=points)
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
