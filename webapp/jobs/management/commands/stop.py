"""`manage.py stop JOB`: ask for a job's end."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.jobs import services
from webapp.jobs.phases import phase_text
from webapp.jobs.terminal import find_job, on_behalf


class Command(BaseCommand):
    help = "Stop a job. A queued or paused one is cancelled at once; a running one ends within seconds."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("job", help="the job's number")
        parser.add_argument("--user", help="on whose behalf (default: an operator's)")

    def handle(self, *args: Any, **options: Any) -> None:
        job = find_job(options["job"])
        user = on_behalf(options["user"], job)
        stopping = services.request_stop(job=job, by=user)
        job.refresh_from_db()
        if not stopping:
            raise CommandError(f"job: {job.pk} has ended already ({job.state}); there is nothing to stop.")
        self.stdout.write(f"job {job.pk} {job.state}: {phase_text(job)}")
