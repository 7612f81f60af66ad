"""The way in (login, one-time link, home) and the health addresses."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_safe

from webapp.teams import health, login_links
from webapp.teams.models import Team


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """To the jobs of the user's first team; without one, a page that says whom to ask."""
    team = Team.objects.visible_to(request.user).first()
    if team is None:
        return render(request, "teams/none.html")
    return redirect("jobs", slug=team.slug)


@never_cache
@login_not_required
@require_GET
def login_link(request: HttpRequest, uidb64: str, token: str) -> HttpResponse:
    """Log in by a one-time link; `?next=` names the page to open, on this site only."""
    user = login_links.redeem(uidb64, token)
    target = _safe_next(request)
    if user is None:
        if request.user.is_authenticated:
            return redirect(target)
        messages.error(request, "This link has been used or is older than a day. Log in, or ask for a new one.")
        return redirect("login")
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect(target)


def _safe_next(request: HttpRequest) -> str:
    target = request.GET.get("next", "")
    allowed = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if allowed else resolve_url("home")


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """This process serves."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@login_not_required
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """What this process needs, by name; 503 while something of it is missing."""
    checks = health.readiness()
    ready = all(answer == health.OK for answer in checks.values())
    return JsonResponse({"ready": ready, **checks}, status=200 if ready else 503)
