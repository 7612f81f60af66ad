"""`manage.py selftest`: what works on the training hosts, as their own small trainings showed."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.cluster.models import Host
from workers.contract import matrix
from workers.contract.inventory import SelfTest


class Command(BaseCommand):
    help = "Print which strategy works with which aggregation, precision and XLA on each training host."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--host", help="only of the host of this name")
        parser.add_argument("--run", action="store_true", help="try on this machine what it has not tried; minutes")
        shape = parser.add_mutually_exclusive_group()
        shape.add_argument("--markdown", action="store_true", help="tables as Markdown")
        shape.add_argument("--json", action="store_true", help="the results as they are stored")

    def handle(self, *args: Any, **options: Any) -> None:
        shape = next((name for name in ("markdown", "json") if options[name]), "")
        if options["run"]:
            words = [sys.executable, "-m", "workers.host.selftest", *([f"--{shape}"] if shape else [])]
            sys.exit(subprocess.run(words, cwd=settings.BASE_DIR, check=False).returncode)
        for host in _hosts(options["host"]):
            self.stdout.write(_told(host, shape))


def _hosts(name: str | None) -> list[Host]:
    hosts = list(Host.objects.filter(name=name) if name else Host.objects.known())
    if name and not hosts:
        known = ", ".join(Host.objects.values_list("name", flat=True)) or "none yet"
        raise CommandError(f"--host: there is no host {name!r}. Known: {known}")
    if not hosts:
        raise CommandError("No training host has been heard within a day. `--run` tries this machine.")
    return hosts


def _told(host: Host, shape: str) -> str:
    result = host.selftest
    if shape == "json":
        return (result or SelfTest(key="")).model_dump_json(indent=1)
    title = f"## {host.name}\n" if shape == "markdown" else f"{host.name}:"
    if result is None or result == SelfTest(key=result.key):
        return f"{title}\nIts self-test has not begun: a job runs, or LOCKSTEP_SELFTEST is off.\n"
    note = "" if result.complete else "\nIt is not complete yet."
    return f"{title}\n{matrix.markdown(result) if shape == 'markdown' else matrix.text(result)}{note}\n"
