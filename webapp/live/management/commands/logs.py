"""`manage.py logs JOB`: a job's log on a terminal; `--follow` stays until the job has ended."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from django.core.management.base import BaseCommand

from webapp.jobs.models import ENDED, Job, State
from webapp.jobs.terminal import find_job
from webapp.live.logs import MOST, lines
from webapp.live.messages import Line

POLL_SECONDS = 0.4
LAST_WORDS_SECONDS = 2.0
"""How long a job that has ended may be silent before its log counts as complete."""


class Command(BaseCommand):
    help = "Print a job's log. With --follow until it ends; the exit code is then 0 only when it succeeded."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("job", help="the job's number")
        parser.add_argument("--follow", action="store_true", help="stay until the job has ended")
        parser.add_argument("--process", default="", help="only this one: worker-0")
        parser.add_argument("--stream", default="", choices=["stdout", "stderr"], help="only this one")

    def handle(self, *args: Any, **options: Any) -> None:
        job = find_job(options["job"])
        wanted = (options["process"], options["stream"])
        last = self._print(job, 0, *wanted)
        if options["follow"]:
            self._follow(job, last, *wanted)
            if job.state != State.SUCCEEDED:
                self.stderr.write(f"{job.get_state_display()}: {job.cause}".rstrip(": "))
                sys.exit(1)

    def _follow(self, job: Job, last: int, process: str, stream: str) -> None:
        heard = time.monotonic()
        while job.state not in ENDED or time.monotonic() - heard < LAST_WORDS_SECONDS:
            time.sleep(POLL_SECONDS)
            job.refresh_from_db(fields=["state", "cause"])
            before, last = last, self._print(job, last, process, stream)
            if last != before or job.state not in ENDED:
                heard = time.monotonic()

    def _print(self, job: Job, last: int, process: str, stream: str) -> int:
        while True:
            page = lines(job, after=last, limit=MOST, process=process, stream=stream)
            for line in page.lines:
                self.stdout.write(_shown(line))
            last = page.last or last
            if not page.more:
                self.stdout.flush()
                return last


def _shown(line: Line) -> str:
    return f"{line.process} {'!' if line.stream == 'stderr' else '|'} {line.text}"
