"""The library's pages: all datasets and models, and one of them."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.library import items, offered
from webapp.library.models import Item, Upload, UploadState
from webapp.teams import access
from webapp.teams.models import Team
from workers.contract.library import CONFINEMENTS
from workers.contract.problems import SpecInvalid


@require_safe
def library(request: HttpRequest, slug: str) -> HttpResponse:
    """Everything that the team can train with or on; `?archived=1` what it has put away."""
    team = access.get_team_or_404(request.user, slug)
    archived = request.GET.get("archived") == "1"
    waiting = Upload.objects.filter(team=team).exclude(state=UploadState.DONE).select_related("owner", "version")
    found = items.rows(team, archived=archived)
    context = {
        "team": team,
        "models": found["model"],
        "datasets": found["dataset"],
        "uploads": waiting[:50],
        "archived": archived,
        "put_away": Item.objects.filter(team=team, archived__isnull=False).count(),
        "may_write": access.may_write(request.user, team),
    }
    return render(request, "library/library.html", context)


@require_safe
def item(request: HttpRequest, slug: str, item_id: int) -> HttpResponse:
    """One uploaded dataset or model, with its versions and the jobs that use it."""
    team, found = _item(request, slug, item_id)
    versions = list(found.versions.select_related("owner"))
    facts = versions[0].facts
    context = {
        "team": team,
        "item": found,
        "version": versions[0],
        "versions": versions,
        "held": CONFINEMENTS[versions[0].report.confinement],
        "report": versions[0].report,
        "facts": facts,
        "data": versions[0].data,
        "data_shape": items.data_shape(versions[0].data) if versions[0].data else "",
        "data_width": items.data_width(versions[0].data) if versions[0].data else "",
        "preview": versions[0].report.preview,
        "shape": items.shape_text(facts.inputs) if facts else "",
        "uses": items.jobs_of(found),
        "may_write": access.may_write(request.user, team),
        "choice": next((one.value for one in offered.of_team(team) if one.title == found.name), ""),
    }
    return render(request, "library/item.html", context)


@require_POST
def rename(request: HttpRequest, slug: str, item_id: int) -> HttpResponse:
    """Give an item another name."""
    team, found = _item(request, slug, item_id)
    access.check_may_write(request.user, team)
    try:
        items.rename(found, request.POST.get("name", ""))
    except SpecInvalid as error:
        messages.error(request, f"Not renamed. {error}")
    return redirect("library-item", slug=slug, item_id=item_id)


@require_POST
def archive(request: HttpRequest, slug: str, item_id: int) -> HttpResponse:
    """Put an item away, or with `back=1` bring it back."""
    team, found = _item(request, slug, item_id)
    access.check_may_write(request.user, team)
    away = request.POST.get("back") != "1"
    try:
        items.archive(found, away=away)
    except SpecInvalid as error:
        messages.error(request, f"Not brought back. {error}")
        return redirect("library-item", slug=slug, item_id=item_id)
    if not away:
        return redirect("library-item", slug=slug, item_id=item_id)
    messages.success(request, f"{found.name} is archived. Jobs that use it are not touched.")
    return redirect("library", slug=slug)


@require_safe
def built_in(request: HttpRequest, slug: str, kind: str, name: str) -> HttpResponse:
    """One of those that Lockstep brings along."""
    team = access.get_team_or_404(request.user, slug)
    entry = items.built_in(kind, name)
    if entry is None:
        raise Http404(f"there is no built-in {kind} {name}")
    context = {
        "team": team,
        "entry": entry,
        "info": items.data_of(entry) if entry.kind == "dataset" else None,
        "shape": items.example_text(items.data_of(entry)) if entry.kind == "dataset" else "",
        "memory": items.memory_of(items.data_of(entry)) if entry.kind == "dataset" else None,
        "preview": items.glimpse_of(entry) if entry.kind == "dataset" else None,
        "sizes": items.sizes(entry.name) if entry.kind == "model" else [],
        "jobs": items.jobs_with(team, entry.kind, entry.name),
    }
    return render(request, "library/built_in.html", context)


def _item(request: HttpRequest, slug: str, item_id: int) -> tuple[Team, Item]:
    team = access.get_team_or_404(request.user, slug)
    return team, get_object_or_404(Item.objects.visible_to(request.user).select_related("owner"), team=team, pk=item_id)
