"""`manage.py pause JOB`: ask for a checkpoint and for the devices of a job."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.jobs import services
from webapp.jobs.phases import phase_text
from webapp.jobs.terminal import find_job, on_behalf


class Command(BaseCommand):
    help = "Pause a job: it saves a checkpoint and gives its devices back; `resume` lets it go on."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("job", help="the job's number")
        parser.add_argument("--user", help="on whose behalf (default: an operator's)")

    def handle(self, *args: Any, **options: Any) -> None:
        job = find_job(options["job"])
        on_behalf(options["user"], job)
        done = services.request_pause(job=job)
        job.refresh_from_db()
        if not done:
            raise CommandError(f"job: {job.pk} ({job.state}) does not run, so there is nothing to pause.")
        self.stdout.write(f"job {job.pk} {job.state}: {phase_text(job)}")
