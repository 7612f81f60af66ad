"""`manage.py jobs`: the newest jobs."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.jobs.models import Job, State
from webapp.jobs.presenting import row_message
from webapp.jobs.terminal import as_json, table
from webapp.teams.models import Team


class Command(BaseCommand):
    help = "List jobs, the newest first."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--team", help="only of the team of this slug")
        parser.add_argument("--state", choices=State.values, help="only in this state")
        parser.add_argument("--limit", type=int, default=50, help="how many (50)")
        parser.add_argument("--json", action="store_true", help="as one JSON document")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["limit"] < 1:
            raise CommandError(f"--limit: must be 1 or more (got {options['limit']}).")
        jobs = Job.objects.for_rows().newest_first()
        if options["team"]:
            _check_team(options["team"])
            jobs = jobs.filter(team__slug=options["team"])
        if options["state"]:
            jobs = jobs.filter(state=options["state"])
        rows = [row_message(job) for job in jobs[: options["limit"]]]
        if options["json"]:
            self.stdout.write(as_json(rows))
        elif rows:
            self.stdout.write(table(rows))
        else:
            self.stdout.write("No jobs yet. `manage.py submit SPEC.yaml` submits one.")


def _check_team(slug: str) -> None:
    if not Team.objects.filter(slug=slug).exists():
        known = ", ".join(Team.objects.values_list("slug", flat=True)) or "none yet"
        raise CommandError(f"--team: there is no team {slug!r}. Known: {known}")
