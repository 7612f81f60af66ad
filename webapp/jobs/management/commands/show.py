"""`manage.py show JOB`: one job in full."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from webapp.jobs.presenting import job_message
from webapp.jobs.terminal import as_json, find_job, summary


class Command(BaseCommand):
    help = "Show one job: state, figures, processes, and the cause when it failed."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("job", help="the job's number")
        parser.add_argument("--json", action="store_true", help="as one JSON document, its spec included")

    def handle(self, *args: Any, **options: Any) -> None:
        job = find_job(options["job"])
        message = job_message(job)
        self.stdout.write(as_json({**message, "spec": job.spec_json}) if options["json"] else summary(message))
