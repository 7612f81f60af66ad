"""`manage.py ingest`: takes in what training hosts send. Any number may run; SIGTERM ends it after its batch."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from webapp.ingest.consume import Ingest


class Command(BaseCommand):
    help = "Take in what training hosts send: points, logs and events. Runs until SIGTERM or Ctrl-C."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        self.stderr.write("ingest: listening")
        Ingest(settings.REDIS_URL, stop).run()
        self.stderr.write("ingest: ended")
