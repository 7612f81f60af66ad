"""Jobs on a terminal: aligned tables for people, JSON for scripts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.jobs.models import Job
from webapp.jobs.phases import phase_text
from webapp.teams import access
from webapp.teams.models import User

COLUMNS = ("id", "state", "name", "step", "loss", "samples/s", "strategy", "owner", "phase")


def find_job(given: str) -> Job:
    """The job of that number. Raises CommandError naming the remedy."""
    if given.isdecimal() and len(given) < 19:
        job = Job.objects.select_related("team", "owner").filter(pk=int(given)).first()
        if job is not None:
            return job
    raise CommandError(f"job: there is no job {given!r}. `manage.py jobs` lists those there are.")


def on_behalf(name: str | None, job: Job) -> User | None:
    """The user of that name, who may change `job`; None for an operator. Raises CommandError naming the remedy."""
    if not name:
        return None
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"--user: there is no user {name!r}.")
    if not access.may_write(user, job.team):
        raise CommandError(f"--user: {user} may not change jobs of {job.team}. Ask an owner of the team.")
    return user


class Verb(BaseCommand):
    """A command that asks something of one job, on behalf of a user or of an operator."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("job", help="the job's number")
        parser.add_argument("--user", help="on whose behalf (default: an operator's)")

    def handle(self, *args: Any, **options: Any) -> None:
        job = find_job(options["job"])
        done = self.ask(job, on_behalf(options["user"], job))
        job.refresh_from_db()
        if not done:
            raise CommandError(f"job: {job.pk} {self.too_late(job)}")
        self.stdout.write(f"job {job.pk} {job.state}: {phase_text(job)}")

    def ask(self, job: Job, by: User | None) -> bool:
        """Whether it is done, or on its way."""
        raise NotImplementedError

    def too_late(self, job: Job) -> str:
        """Why nothing was done, after the job's number."""
        raise NotImplementedError


def as_json(value: object) -> str:
    """One document, readable."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The `row` messages as lines of aligned columns."""
    lines = [COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def summary(message: Mapping[str, Any]) -> str:
    """A `job` message as a person reads it."""
    lines = [
        f"{message['name']}  (job {message['id']})",
        f"{message['state_label']}: {message['phase_text']}",
        f"{message['dataset']}, {message['model']}, {message['strategy']} on {_count(message['replicas'])}",
    ]
    if message["cause"]:
        lines.append(message["cause"])
    lines += [f"  {name:<24} {figure(value)}" for name, value in message["latest"].items()]
    lines += [_process(process) for process in message["processes"]]
    if message["log_tail"]:
        lines += [f"The last lines of {message['failed_process'] or 'its log'}:", message["log_tail"].rstrip()]
    return "\n".join(lines)


def figure(value: object) -> str:
    """Six significant digits; words like NaN as they are."""
    return f"{value:,.6g}" if isinstance(value, int | float) else str(value if value is not None else "")


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    position = f"{row['step']:,}/{row['total_steps']:,}" if row["kind"] == "train" else row["kind"]
    name = row["name"] if len(row["name"]) <= 40 else row["name"][:39] + "…"
    return (
        str(row["id"]),
        row["state"],
        name,
        position,
        figure(row["loss"]),
        figure(row["throughput"]),
        row["strategy"],
        row["owner"],
        row["phase_text"],
    )


def _count(replicas: int) -> str:
    return "1 replica" if replicas == 1 else f"{replicas} replicas"


def _process(process: Mapping[str, Any]) -> str:
    ended = "" if process["exit"] is None else f", ended with {process['exit']}"
    return f"  {process['name']} on {process['host']} ({', '.join(process['devices'])}) {process['phase']}{ended}"
