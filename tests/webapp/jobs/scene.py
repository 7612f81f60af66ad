"""Makes jobs, attempts and events for the tests of the control plane, through the same doors as the product."""

from __future__ import annotations

import time
from typing import Any

from django.utils import timezone

from webapp.jobs import services, transitions
from webapp.jobs.models import Attempt, Job, Process, Supervisor
from webapp.teams.models import Team, User
from workers.contract import events as ev
from workers.contract.spec import parse


def queue(team: Team, owner: User, spec: dict[str, Any], **changes: Any) -> Job:
    """A job as `submit` makes it, without asking the cluster."""
    return services.create(team=team, owner=owner, spec=parse({**spec, **changes}))


def launch(job: Job, *hosts: str) -> Attempt:
    """Put a queued job on hosts, one worker each, as the scheduler does."""
    assert transitions.start(job.pk, processes=len(hosts), at=timezone.now())
    attempt = Attempt.objects.create(job=job, number=job.attempts.count() + 1, assignment={"processes": []})
    for index, host in enumerate(hosts):
        Process.objects.create(
            attempt=attempt, name=f"worker-{index}", role="worker", index=index, host=host, chief=index == 0
        )
    for host in sorted(set(hosts)):
        Supervisor.objects.create(attempt=attempt, host=host)
    job.refresh_from_db()
    return attempt


def phase(name: Any, process: str = "worker-0", detail: str = "") -> ev.Phase:
    return ev.Phase(time=time.time(), process=process, phase=name, detail=detail)


def points(steps: list[int], epoch: int = 1, process: str = "worker-0", **series: list[float]) -> ev.Points:
    now = time.time()
    times = [now] * len(steps)
    return ev.Points(
        time=now,
        process=process,
        step=steps[-1],
        epoch=epoch,
        series=[ev.SeriesPoints(name=name, steps=steps, times=times, values=values) for name, values in series.items()],
    )


def ended(host: str, outcome: Any, cause: str = "", target: str | None = None, log_tail: str = "") -> ev.Ended:
    return ev.Ended(
        time=time.time(), process=f"supervisor@{host}", outcome=outcome, cause=cause, target=target, log_tail=log_tail
    )
