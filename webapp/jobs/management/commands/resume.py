"""`manage.py resume JOB`: queue a job again that has a checkpoint."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.jobs import services
from webapp.jobs.phases import phase_text
from webapp.jobs.terminal import find_job, on_behalf


class Command(BaseCommand):
    help = "Let a paused, failed or stopped job go on from its newest checkpoint."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("job", help="the job's number")
        parser.add_argument("--user", help="on whose behalf (default: an operator's)")

    def handle(self, *args: Any, **options: Any) -> None:
        job = find_job(options["job"])
        on_behalf(options["user"], job)
        done = services.resume(job=job)
        job.refresh_from_db()
        if not done:
            raise CommandError(
                f"job: {job.pk} ({job.state}) cannot go on: it has not ended, or the store holds no checkpoint of it."
            )
        self.stdout.write(f"job {job.pk} {job.state}: {phase_text(job)}")
