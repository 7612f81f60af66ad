"""The new-job page: a form and a YAML text, two views of one spec."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_http_methods, require_POST

from webapp.configure import beginnings, forms, in_file, page, services
from webapp.configure.checking import Checked, check_form, check_yaml
from webapp.configure.fit import unfit
from webapp.configure.forms import Typed
from webapp.configure.summary import summarize
from webapp.jobs import resuming
from webapp.jobs.models import Job
from webapp.library import offered
from webapp.teams import access
from webapp.teams.models import Team, User
from workers.contract.problems import Problem, SpecInvalid

YAML = "yaml"


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """The page; a POST submits what it holds and leads to the job.

    `?from=<id>` starts from that job, with `&checkpoint=` goes on from it or, with `&kind=` too, puts it to use;
    `?dataset=` and `?model=` begin with a choice, and with what fits it.
    """
    team, user = _writable(request, slug)
    if request.method == "POST":
        return _submit(request, team, user)
    source = _source(request)
    typed = forms.form_from_spec(source.spec_json) if source else _blank(request)
    if source is not None and request.GET.get("checkpoint"):
        typed = {**typed, **beginnings.going_on(source.pk, request.GET["checkpoint"])}
        if request.GET.get("kind") in forms.USES:
            typed |= beginnings.put_to_use(typed, request.GET["kind"])
    typed = _with_facts(typed, team)
    if source is None:
        typed = beginnings.fitted(typed, {f"{kind}.name" for kind in ("dataset", "model") if request.GET.get(kind)})
    checked = check_form(typed, team)
    if source is None:
        typed["name"] = (checked.document or {}).get("name", "")
    view = YAML if request.GET.get("view") == YAML else "form"
    return render(request, "configure/new.html", _context(team, typed, checked, view=view, source=source))


@require_POST
def fields(request: HttpRequest, slug: str) -> HttpResponse:
    """The form drawn anew: of `yaml` where that is sent, else of what was typed.

    422 with the problems as JSON when the form has no place for what the text says.
    """
    team, _ = _writable(request, slug)
    if YAML in request.POST:
        checked = check_yaml(request.POST[YAML], team)
        typed = forms.form_from_spec(checked.document or {})
        if checked.document is None or not all(forms.has_field(problem, typed) for problem in checked.problems):
            return JsonResponse({"problems": _problems(checked, typed, YAML)}, status=422)
    else:
        typed = _with_facts(forms.typed_from_post(request.POST.dict()), team)
        checked = check_form(typed, team)
    files = offered.of_team(team)
    drawn = page.build(typed, checked.problems, unfit(typed, files), files)
    return render(request, "configure/_form.html", {"page": drawn, "team": team, "recent": resuming.recent(team)})


@require_POST
def check(request: HttpRequest, slug: str) -> JsonResponse:
    """`{ok, problems, yaml, summary, unfit, facts, suggested_name}` of what was typed, in the view that is sent."""
    team, _ = _writable(request, slug)
    view, typed, checked = _posted(request, team)
    return JsonResponse(
        {
            "ok": not checked.problems,
            "problems": _problems(checked, typed, view),
            "yaml": checked.yaml,
            "summary": _summary_html(request, team, checked),
            "unfit": unfit(typed, offered.of_team(team)) if view == "form" else {},
            "facts": page.model_facts(typed),
            "names_in_file": in_file.names_in_file(typed),
            "suggested_name": forms.suggest_name(checked.document or {}, typed),
        }
    )


def _blank(request: HttpRequest) -> Typed:
    """The empty form; `?dataset=` and `?model=` choose for it, as the library's pages do."""
    chosen = {f"{kind}.name": request.GET[kind] for kind in ("dataset", "model") if request.GET.get(kind)}
    return forms.blank() | chosen


def _submit(request: HttpRequest, team: Team, user: User) -> HttpResponse:
    view, typed, checked = _posted(request, team)
    if checked.spec is not None and not checked.problems:
        try:
            job = services.submit(team=team, owner=user, spec=checked.spec)
        except SpecInvalid as error:
            checked = Checked(checked.document, checked.spec, error.problems)
        else:
            response = redirect("job", job_id=job.pk)
            response.status_code = 303
            return response
    text = request.POST.get(YAML) if view == YAML else None
    context = _context(team, typed, checked, view=view, text=text, source=_source(request))
    return render(request, "configure/new.html", context | {"refused": True}, status=422)


def _posted(request: HttpRequest, team: Team) -> tuple[str, Typed, Checked]:
    """Which of the two views was sent, what stands in the form, and what the contract says of it."""
    if request.POST.get("view") == YAML:
        checked = check_yaml(request.POST.get(YAML, ""), team)
        return YAML, forms.form_from_spec(checked.document or {}), checked
    typed = _with_facts(forms.typed_from_post(request.POST.dict()), team)
    return "form", typed, check_form(typed, team)


def _with_facts(typed: Typed, team: Team) -> dict[str, str]:
    """What is typed, with what the library knows of the chosen files, whatever the browser said of them."""
    document = forms.spec_from_form(typed)
    titles = {f"{kind}.{forms.TITLE}": title for kind, title in offered.titles(document, team).items()}
    return in_file.with_facts(typed, offered.complete(document, team)) | titles


def _writable(request: HttpRequest, slug: str) -> tuple[Team, User]:
    team = access.get_team_or_404(request.user, slug)
    return team, access.check_may_write(request.user, team)


def _source(request: HttpRequest) -> Job | None:
    """The job to start from, if one is named. Raises Http404 when the user cannot see it."""
    given = request.GET.get("from", "")
    if not given:
        return None
    if not given.isdecimal() or len(given) > 18:
        raise Http404(f"from: {given} is not the number of a job")
    return get_object_or_404(Job.objects.visible_to(request.user), pk=int(given))


def _context(
    team: Team, typed: Typed, checked: Checked, *, view: str, text: str | None = None, source: Job | None = None
) -> dict[str, Any]:
    files = offered.of_team(team)
    return {
        "team": team,
        "page": page.build(typed, checked.problems, unfit(typed, files), files),
        "view": view,
        "yaml": checked.yaml if text is None else text,
        "summary": summarize(checked),
        "problems": checked.problems,
        "suggested_name": forms.suggest_name(checked.document or {}, typed),
        "recent": resuming.recent(team),
        "source": source,
        "hide_new": True,
    }


def _summary_html(request: HttpRequest, team: Team, checked: Checked) -> str:
    context = {"team": team, "summary": summarize(checked), "problems": checked.problems}
    return render_to_string("configure/_summary.html", context, request)


def _problems(checked: Checked, typed: Typed, view: str) -> list[dict[str, Any]]:
    return [_said(problem, typed, view) for problem in checked.problems]


def _said(problem: Problem, typed: Typed, view: str) -> dict[str, Any]:
    """The problem with the name of the field beside which it is shown; empty in the YAML view."""
    name = forms.field_at(problem.path, typed) if view == "form" else None
    return {**problem.as_dict(), "field": name or ""}
