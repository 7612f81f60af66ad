"""Follows one job on a terminal until it ends."""

from __future__ import annotations

import time
from collections.abc import Callable

from webapp.jobs.models import ENDED, Job
from webapp.jobs.phases import eta_seconds, phase_text
from webapp.jobs.terminal import figure

LOOK_SECONDS = 0.5
LINE_SECONDS = 2.0
"""While only the step moves, a line is printed so often and no oftener."""


def wait_for_end(job: Job, *, tell: Callable[[str], None]) -> Job:
    """The job once it has ended; each change of its state or phase, and its steps, told as a line meanwhile."""
    told, told_at = "", 0.0
    while True:
        job = Job.objects.get(pk=job.pk)
        line, now = _line(job), time.monotonic()
        news = line != told and (_stage(line) != _stage(told) or now - told_at >= LINE_SECONDS or job.state in ENDED)
        if news:
            tell(line)
            told, told_at = line, now
        if job.state in ENDED:
            return job
        time.sleep(LOOK_SECONDS)


def _stage(line: str) -> str:
    """A line without its figures."""
    return "".join(character for character in line.split(", loss", maxsplit=1)[0] if not character.isdigit())


def _line(job: Job) -> str:
    text = phase_text(job)
    parts = [f"job {job.pk} {text}" if text.startswith(job.state) else f"job {job.pk} {job.state}: {text}"]
    if job.latest.get("loss") is not None:
        parts.append(f"loss {figure(job.latest['loss'])}")
    if job.latest.get("throughput") is not None:
        parts.append(f"{figure(job.latest['throughput'])} samples/s")
    eta = eta_seconds(job)
    return ", ".join([*parts, f"{eta:.0f} s left"] if eta is not None else parts)
