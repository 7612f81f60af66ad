"""The upload page, and the addresses that its script sends a file to: begun, then range by range."""

from __future__ import annotations

import re
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.library import uploads
from webapp.library.models import Item, Upload
from webapp.library.uploads import RANGE_BYTES, WrongOffset
from webapp.teams import access
from webapp.teams.models import Team, User
from workers.contract.library import FORMATS
from workers.contract.problems import Problem, SpecInvalid


@require_safe
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """Where a file is chosen or dropped; `?item=<id>` adds a version to that item, `?kind=` says what is wanted."""
    team, user = _writable(request, slug)
    item = _item(team, request.GET.get("item", ""))
    kind = item.kind if item else request.GET.get("kind", "")
    formats = [(name, one) for name, one in FORMATS.items() if kind in ("", one.kind)]
    context = {
        "team": team,
        "item": item,
        "formats": formats or list(FORMATS.items()),
        "may_run_code": access.may_run_code(user, team),
        "range_bytes": RANGE_BYTES,
    }
    return render(request, "library/upload.html", context)


@require_POST
def begin(request: HttpRequest, slug: str) -> JsonResponse:
    """Begin an upload: `filename`, `size`, `format`, and `name` or `item`. 422 with the problems when it may not be."""
    team, user = _writable(request, slug)
    given = request.POST
    try:
        upload = uploads.begin(
            team=team,
            owner=user,
            format_name=given.get("format", ""),
            filename=given.get("filename", ""),
            size=_whole("size", given.get("size", "")),
            name=given.get("name", ""),
            item=_item(team, given.get("item", "")),
            options=_options(given.get("format", ""), given.get("inputs", ""), given.get("outputs", "")),
        )
    except SpecInvalid as error:
        return _problems(error)
    return JsonResponse(upload.public, status=201)


@require_http_methods(["GET", "HEAD", "PUT", "DELETE"])
def file(request: HttpRequest, slug: str, upload_id: Any) -> HttpResponse:
    """GET how far it is; PUT the range that begins at `?offset=`; DELETE it. 409 tells where the next range begins."""
    team, _ = _writable(request, slug)
    upload = get_object_or_404(Upload.objects.select_related("version"), team=team, pk=upload_id)
    if request.method == "DELETE":
        uploads.cancel(upload)
        return HttpResponse(status=204)
    if request.method != "PUT":
        return JsonResponse(upload.public)
    try:
        upload = uploads.append(upload, _whole("offset", request.GET.get("offset", "")), request)
    except WrongOffset:
        return JsonResponse(upload.public, status=409)
    except SpecInvalid as error:
        return _problems(error)
    except OSError:
        message = "The server could not keep it: its disk or its artifact store is away or full."
        return JsonResponse({"error": message}, status=503)
    return JsonResponse(upload.public)


def _writable(request: HttpRequest, slug: str) -> tuple[Team, User]:
    team = access.get_team_or_404(request.user, slug)
    return team, access.check_may_write(request.user, team)


def _item(team: Team, given: str) -> Item | None:
    if not given:
        return None
    if not given.isdecimal() or len(given) > 18:
        raise Http404(f"item: {given} is not the number of an item")
    return get_object_or_404(Item.objects.in_use(), team=team, pk=int(given))


def _options(format_name: str, inputs: str, outputs: str) -> dict[str, Any]:
    """What a Python module is tried with."""
    if format_name != "python_module":
        return {}
    sizes = [part for part in re.split(r"[\s,x]+", inputs.strip()) if part]
    if not 1 <= len(sizes) <= 10:
        raise SpecInvalid([Problem("inputs", "must be one to ten sizes", inputs, "Give such as 28, 28, 1")])
    return {"inputs": [_whole("inputs", size) for size in sizes], "outputs": _whole("outputs", outputs)}


def _whole(path: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 12 or (path in {"inputs", "outputs"} and not 1 <= int(text) <= 10**7):
        raise SpecInvalid([Problem(path, "must be a whole number", text, "Give such as 10")])
    return int(text)


def _problems(error: SpecInvalid) -> JsonResponse:
    return JsonResponse({"problems": [problem.as_dict() for problem in error.problems]}, status=422)
