"""`manage.py control`: the process that places jobs, tells hosts, and reaps. Several may run."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand

from webapp.cluster.control import Control


class Command(BaseCommand):
    help = "Place queued jobs on hosts, send launches and stops, end what has gone silent. Ends on SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        control = Control()

        def end(number: int, frame: FrameType | None) -> None:
            control.stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        control.run()
