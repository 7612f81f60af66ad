"""`manage.py demo`: everything on this machine, with a first job."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.embedded.alone import AlreadyRunning
from webapp.embedded.demo import EMBEDDED, CannotStart, environment, run
from webapp.embedded.redis_server import NoRedis


class Command(BaseCommand):
    help = "Run web, control, ingest, Redis and one training host here, and submit a first job."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="Port of the page on 127.0.0.1.")
        parser.add_argument("--no-job", action="store_true", help="Submit nothing by itself.")

    def handle(self, *args: Any, **options: Any) -> None:
        if EMBEDDED not in os.environ:
            # Settings were read already; the demo's environment must come before them.
            os.execve(sys.executable, [sys.executable, *sys.argv], environment(settings.LOCKSTEP_HOME))
        try:
            run(port=options["port"], first_job=not options["no_job"], say=self._say)
        except (AlreadyRunning, CannotStart, NoRedis) as error:
            raise CommandError(str(error), returncode=2) from None

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
