"""`manage.py submit SPEC.yaml`: submit a job from a file, and wait for its end if asked."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError

from webapp.configure.services import submit
from webapp.jobs.models import Job, State
from webapp.jobs.presenting import job_message
from webapp.jobs.terminal import as_json, summary
from webapp.jobs.waiting import wait_for_end
from webapp.teams.models import Membership, Role, Team, User
from workers.contract.problems import SpecInvalid
from workers.contract.spec import JobSpec, parse

INTERRUPTED = 130


class Command(BaseCommand):
    help = "Submit a job. Exit code 0: accepted, or with --wait: succeeded."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("spec", help="a lockstep/v1 document, YAML or JSON; - reads standard input")
        parser.add_argument("--team", help="slug of the team (default: the only one)")
        parser.add_argument("--user", help="the owner's user name (default: the team's first owner)")
        parser.add_argument("--wait", action="store_true", help="print its progress until it ends")
        parser.add_argument("--json", action="store_true", help="print the job as one JSON document")

    def handle(self, *args: Any, **options: Any) -> None:
        spec = _read(options["spec"])
        team = _team(options["team"])
        owner = _owner(options["user"], team)
        try:
            job = submit(team=team, owner=owner, spec=spec)
        except SpecInvalid as error:
            raise CommandError(_listed(options["spec"], error)) from None
        except PermissionDenied:
            raise CommandError(f"--user: {owner} may only read in {team}. Name a member or an owner.") from None
        if not options["json"]:
            self.stdout.write(f"job {job.pk} accepted: {job.name}")
        if options["wait"]:
            job = self._wait(job, quiet=options["json"])
        if options["json"]:
            self.stdout.write(as_json(job_message(job)))
        elif options["wait"]:
            self.stdout.write(summary(job_message(job)))
        if options["wait"] and job.state != State.SUCCEEDED:
            sys.exit(1)

    def _wait(self, job: Job, *, quiet: bool) -> Job:
        """With --json the progress goes to stderr: stdout is one document."""
        out = self.stderr if quiet else self.stdout
        try:
            return wait_for_end(job, tell=out.write)
        except KeyboardInterrupt:
            remedy = f"`manage.py show {job.pk}` shows it, `manage.py stop {job.pk}` ends it."
            self.stderr.write(f"\njob {job.pk} goes on. {remedy}")
            sys.exit(INTERRUPTED)


def _read(name: str) -> JobSpec:
    try:
        document = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"spec: {name} cannot be read: {error.strerror}.") from None
    try:
        return parse(document)
    except SpecInvalid as error:
        raise CommandError(_listed(name, error)) from None


def _listed(name: str, error: SpecInvalid) -> str:
    return "\n".join([f"{name} is refused:", *(f"  {problem}" for problem in error.problems)])


def _team(slug: str | None) -> Team:
    known = list(Team.objects.all()[:20])
    found = [team for team in known if slug is None or team.slug == slug]
    found = found or list(Team.objects.filter(slug=slug))
    if len(found) == 1:
        return found[0]
    names = ", ".join(team.slug for team in known) or "none; `make demo` creates one"
    if slug is None:
        raise CommandError(f"--team: say which team the job belongs to. Known: {names}")
    raise CommandError(f"--team: there is no team {slug!r}. Known: {names}")


def _owner(name: str | None, team: Team) -> User:
    if name is not None:
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"--user: there is no user {name!r}.")
        return user
    owner = Membership.objects.filter(team=team, role=Role.OWNER).select_related("user").order_by("pk").first()
    if owner is None:
        raise CommandError(f"--user: {team} has no owner, so say who submits.")
    return owner.user
