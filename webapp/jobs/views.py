"""Pages and data of jobs: the team's table, one job, its spec, the verbs on it, and its files."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.jobs import services
from webapp.jobs.downloads import file_response, zip_response
from webapp.jobs.listing import ListingInvalid, listing
from webapp.jobs.models import Job, State
from webapp.jobs.presenting import job_message, row_message
from webapp.jobs.resuming import CannotResume
from webapp.jobs.store import store
from webapp.teams import access
from webapp.teams.models import User
from workers.contract.store import artifact_key

log = logging.getLogger(__name__)


def get_job_or_404(request: HttpRequest, job_id: int) -> Job:
    """The job, if the user belongs to its team. Raises Http404."""
    return get_object_or_404(Job.objects.visible_to(request.user).select_related("team", "owner"), pk=job_id)


COLUMNS = (
    ("data", "Dataset, model"),
    ("strategy", "Strategy"),
    ("progress", "Progress"),
    ("loss", "Loss"),
    ("accuracy", "Accuracy"),
    ("throughput", "Samples/s"),
    ("owner", "Owner"),
    ("age", "Age"),
)
"""Those of the table that a person may leave out."""


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
        "columns": COLUMNS,
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


USES = (("evaluate", "Evaluate"), ("predict", "Predict"), ("export", "Export"))
"""What else than going on may be done with a checkpoint: kind of job and words."""


@require_safe
def job(request: HttpRequest, job_id: int) -> HttpResponse:
    """One job's page, its state already in it."""
    found = get_job_or_404(request, job_id)
    context = {
        "job": found,
        "team": found.team,
        "message": job_message(found),
        "spec_yaml": found.spec.to_yaml(),
        "origin": found.spec_json.get("resume"),
        "may_write": access.may_write(request.user, found.team),
        "uses": USES,
    }
    return render(request, "jobs/detail.html", context)


@require_safe
def state(request: HttpRequest, job_id: int) -> JsonResponse:
    """The `job` message."""
    return JsonResponse(job_message(get_job_or_404(request, job_id)))


def _verb(request: HttpRequest, job_id: int, ask: Callable[[Job, User], bool]) -> HttpResponse:
    """Ask something of a job; back to its page, or its `job` message for scripts (409 when it cannot be done now, with
    `why` where there is more to say than that)."""
    found = get_job_or_404(request, job_id)
    user = access.check_may_write(request.user, found.team)
    done, why = False, ""
    try:
        done = ask(found, user)
    except CannotResume as error:
        why = str(error)
    if not request.accepts("text/html"):
        found.refresh_from_db()
        return JsonResponse({**job_message(found), "why": why}, status=200 if done else 409)
    response = redirect("job", job_id=job_id)
    response.status_code = 303
    return response


@require_POST
def stop(request: HttpRequest, job_id: int) -> HttpResponse:
    """Ask for the job's end; 409 when it had ended."""
    return _verb(request, job_id, lambda job, user: services.request_stop(job=job, by=user))


@require_POST
def pause(request: HttpRequest, job_id: int) -> HttpResponse:
    """Ask for a checkpoint and for the devices; 409 when it does not run."""
    return _verb(request, job_id, lambda job, user: services.request_pause(job=job, by=user))


@require_POST
def resume(request: HttpRequest, job_id: int) -> HttpResponse:
    """Queue the job again, to go on from its newest checkpoint; 409 when there is none, or it has not ended."""
    return _verb(request, job_id, lambda job, user: services.resume(job=job, by=user))


@require_POST
def save(request: HttpRequest, job_id: int) -> HttpResponse:
    """Ask for a checkpoint soon; 409 when the job does not run."""
    return _verb(request, job_id, lambda job, _: services.request_save(job=job))


@require_safe
def artifact(request: HttpRequest, job_id: int, name: str) -> HttpResponseBase:
    """A finished file, such as model.keras."""
    found = get_job_or_404(request, job_id)
    known = next((each for each in found.artifacts if each["name"] == name), None)
    if known is None or not known.get("stored"):
        return _absent(request, found, name, known or {})
    saved_as = f"{_file_name(found)}-{name}"
    return _streamed(request, found, name, lambda: file_response(store(), artifact_key(found.pk, name), saved_as))


@require_safe
def checkpoint(request: HttpRequest, job_id: int, name: str) -> HttpResponseBase:
    """A checkpoint's folder as a zip."""
    found = get_job_or_404(request, job_id)
    known = found.checkpoints.filter(name=name).newest_first().first()
    if known is None or known.stored is None:
        facts = {"host": known.host, "path": known.path, "problem": known.problem} if known else {}
        return _absent(request, found, name, facts)
    saved_as = f"{_file_name(found)}-{name}.zip"
    return _streamed(request, found, name, lambda: zip_response(store(), known.key, saved_as))


def _streamed(request: HttpRequest, job: Job, name: str, make: Callable[[], StreamingHttpResponse]) -> HttpResponseBase:
    try:
        return make()
    except (OSError, ValueError) as error:
        log.warning("job %s: %s cannot be read from the artifact store: %s", job.pk, name, error)
        return _absent(request, job, name, {"unreadable": True})


def _absent(request: HttpRequest, job: Job, name: str, facts: Mapping[str, object]) -> HttpResponse:
    """Says where the file is instead."""
    context = {"job": job, "team": job.team, "name": name, **facts}
    return render(request, "jobs/absent.html", context, status=404)


def _file_name(job: Job) -> str:
    """The job's name as a part of a file's name."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", job.name).strip("-").lower()[:60] or "job"
    return f"{name}-{job.pk}"


@require_safe
def spec(request: HttpRequest, job_id: int) -> HttpResponse:
    """The spec as a YAML file."""
    found = get_job_or_404(request, job_id)
    disposition = f'attachment; filename="{_file_name(found)}.yaml"'
    headers = {"Content-Disposition": disposition}
    return HttpResponse(found.spec.to_yaml(), content_type="application/yaml; charset=utf-8", headers=headers)
