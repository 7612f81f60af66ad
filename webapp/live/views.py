"""A job's series and logs as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from webapp.jobs.models import Job
from webapp.live import query
from webapp.live.logs import MOST, lines
from webapp.live.messages import Curve, SeriesAnswer
from webapp.metrics import store
from workers.contract.base import Strict

View = Callable[[HttpRequest, int], HttpResponse]


def _answers_bad_queries(view: View) -> View:
    @wraps(view)
    def answering(request: HttpRequest, job_id: int) -> HttpResponse:
        try:
            return view(request, job_id)
        except query.BadQuery as error:
            return JsonResponse({"error": str(error), "field": error.field}, status=400)

    return answering


@require_safe
@_answers_bad_queries
def series(request: HttpRequest, job_id: int) -> HttpResponse:
    """`names`, `points`, `first`, `last` thin and zoom; `since` asks for all points from given indexes on."""
    job = _job(request, job_id)
    names = query.names(request.GET, "names")
    points = query.whole(request.GET, "points", least=1, most=50_000)
    first, last = query.whole(request.GET, "first"), query.whole(request.GET, "last")
    since = query.indexes(request.GET, "since")
    if since is not None:
        curves = store.read_since(job.pk, since)
    else:
        curves = store.read(job.pk, names=names, first=first, last=last, points=points or 2000)
    return _json(SeriesAnswer(job=job.pk, series=[_curve(curve) for curve in curves]))


@require_safe
@_answers_bad_queries
def logs(request: HttpRequest, job_id: int) -> HttpResponse:
    """`process`, `stream` and `q` filter; `after` and `before` are ids to page from."""
    job = _job(request, job_id)
    answer = lines(
        job,
        process=query.text(request.GET, "process"),
        stream=query.one_of(request.GET, "stream", ("stdout", "stderr")),
        q=query.text(request.GET, "q"),
        after=query.whole(request.GET, "after", least=0),
        before=query.whole(request.GET, "before", least=0),
        limit=query.whole(request.GET, "limit", least=1, most=MOST) or 500,
    )
    return _json(answer)


def _job(request: HttpRequest, job_id: int) -> Job:
    return get_object_or_404(Job.objects.visible_to(request.user).only("pk"), pk=job_id)


def _curve(curve: store.Curve) -> Curve:
    return Curve(
        name=curve.key.name,
        replica=curve.key.replica,
        count=curve.count,
        start=curve.start,
        steps=curve.steps.tolist(),
        times=curve.times.tolist(),
        values=curve.values.tolist(),
        thinned=curve.thinned,
    )


def _json(answer: Strict) -> HttpResponse:
    return HttpResponse(
        answer.model_dump_json(), content_type="application/json", headers={"Cache-Control": "no-store"}
    )
