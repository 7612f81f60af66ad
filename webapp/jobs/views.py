"""Pages and data of jobs: the team's table, one job, its spec, its stop."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.jobs import services
from webapp.jobs.listing import ListingInvalid, listing
from webapp.jobs.models import Job, State
from webapp.jobs.presenting import job_message, row_message
from webapp.teams import access


def get_job_or_404(request: HttpRequest, job_id: int) -> Job:
    """The job, if the user belongs to its team. Raises Http404."""
    return get_object_or_404(Job.objects.visible_to(request.user).select_related("team", "owner"), pk=job_id)


@require_safe
def jobs(request: HttpRequest, slug: str) -> HttpResponse:
    """The table with its first page; it asks `jobs-rows` for more and listens on the team's socket."""
    team = access.get_team_or_404(request.user, slug)
    try:
        page = listing(team, request.GET.dict())
    except ListingInvalid:
        return redirect("jobs", slug=slug)  # an old or mistyped address: the table without its filters
    context = {
        "team": team,
        "rows": [row_message(job) for job in page.jobs],
        "total": page.total,
        "states": State.choices,
        "may_write": access.may_write(request.user, team),
    }
    return render(request, "jobs/list.html", context)


@require_safe
def rows(request: HttpRequest, slug: str) -> JsonResponse:
    """`{rows, total}` for the filter, sort and page asked for; 400 with the problem when they cannot be."""
    team = access.get_team_or_404(request.user, slug)
    try:
        page = listing(team, request.GET.dict())
    except ListingInvalid as error:
        return JsonResponse({"problem": error.problem.as_dict()}, status=400)
    return JsonResponse({"rows": [row_message(job) for job in page.jobs], "total": page.total})


@require_safe
def job(request: HttpRequest, job_id: int) -> HttpResponse:
    """One job's page, its state already in it."""
    found = get_job_or_404(request, job_id)
    context = {
        "job": found,
        "team": found.team,
        "message": job_message(found),
        "spec_yaml": found.spec.to_yaml(),
        "may_write": access.may_write(request.user, found.team),
    }
    return render(request, "jobs/detail.html", context)


@require_safe
def state(request: HttpRequest, job_id: int) -> JsonResponse:
    """The `job` message."""
    return JsonResponse(job_message(get_job_or_404(request, job_id)))


@require_POST
def stop(request: HttpRequest, job_id: int) -> HttpResponse:
    """Ask for the job's end; back to its page, or its `job` message for scripts (409 when it had ended)."""
    found = get_job_or_404(request, job_id)
    user = access.check_may_write(request.user, found.team)
    stopping = services.request_stop(job=found, by=user)
    if not request.accepts("text/html"):
        found.refresh_from_db()
        return JsonResponse(job_message(found), status=200 if stopping else 409)
    response = redirect("job", job_id=job_id)
    response.status_code = 303
    return response


@require_safe
def spec(request: HttpRequest, job_id: int) -> HttpResponse:
    """The spec as a YAML file."""
    found = get_job_or_404(request, job_id)
    name = re.sub(r"[^A-Za-z0-9]+", "-", found.name).strip("-").lower()[:60] or "job"
    disposition = f'attachment; filename="{name}-{found.pk}.yaml"'
    headers = {"Content-Disposition": disposition}
    return HttpResponse(found.spec.to_yaml(), content_type="application/yaml; charset=utf-8", headers=headers)
