"""Gives queued jobs their devices, oldest first; one that cannot start says why and lets later ones pass.

Safe with several control processes: the job, and each device, is taken by an UPDATE that only one of them can win.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Q
from pydantic import ValidationError

from webapp.cluster import offers
from webapp.cluster.clock import database_now
from webapp.cluster.models import Device, Host
from webapp.cluster.placing import Waiting, place
from webapp.jobs import notices, transitions
from webapp.jobs.models import Attempt, Job, Process, Supervisor
from workers.contract.assignment import Assignment, Place
from workers.contract.layout import ProcessAssignment
from workers.contract.problems import SpecInvalid, shorten
from workers.contract.selftest import case_of
from workers.contract.spec import JobSpec

LOOK_AHEAD = 200
"""Queued jobs looked at in one pass."""

log = logging.getLogger(__name__)


class Taken(Exception):
    """Another control process was quicker with the job or with one of the devices."""


def schedule() -> list[int]:
    """Start every queued job that can start now; the jobs' ids. Those that cannot have their reason stored."""
    started: list[int] = []
    waiting = list(Job.objects.queued().oldest_first().select_related("resume_checkpoint")[:LOOK_AHEAD])
    online = offers.read(Host.objects.online()) if waiting else []
    for job in waiting:
        try:
            spec = job.spec
            layout = spec.layout
        except (ValidationError, SpecInvalid) as error:
            _refuse(job, error)
            continue
        able = offers.able(online, spec.dataset.name, case_of(spec))
        plan = place(layout, able) if able or not online else Waiting(offers.lack(online, spec))
        if isinstance(plan, Waiting):
            _wait(job, plan)
        elif _start(job, spec, plan):
            started.append(job.pk)
            online = offers.read(Host.objects.online())
    return started


def _wait(job: Job, plan: Waiting) -> None:
    with transaction.atomic():
        if job.reason != plan.reason[:500] and transitions.wait(job.pk, reason=plan.reason):
            notices.changed([job.pk])


def _refuse(job: Job, error: Exception) -> None:
    with transaction.atomic():
        cause = f"This Lockstep no longer reads its spec: {shorten(str(error), 500)}"
        if transitions.fail_queued(job.pk, cause=cause):
            notices.changed([job.pk])


def _start(job: Job, spec: JobSpec, plan: tuple[ProcessAssignment, ...]) -> bool:
    try:
        with transaction.atomic():
            attempt = _launch(job, spec, plan)
            notices.changed([job.pk])
    except Taken:
        return False
    log.info("job %s starts as attempt %s on %s", job.pk, attempt.pk, ", ".join(sorted({p.host for p in plan})))
    return True


def _launch(job: Job, spec: JobSpec, plan: tuple[ProcessAssignment, ...]) -> Attempt:
    hosts = ", ".join(sorted({process.host for process in plan}))
    if not transitions.start(job.pk, processes=len(plan), at=database_now(), hosts=hosts):
        raise Taken
    checkpoint = job.resume_checkpoint
    number = job.attempts.count() + 1
    attempt = Attempt.objects.create(job=job, number=number, assignment={}, resume_step=job.resume_step)
    _take(attempt, plan)
    resume = checkpoint.key if checkpoint else None
    assignment = Assignment(job=job.pk, attempt=attempt.pk, spec=spec, processes=plan, resume=resume)
    attempt.assignment = assignment.model_dump(mode="json")
    attempt.save(update_fields=["assignment"])
    Process.objects.bulk_create(_row(attempt, process, spec, plan) for process in plan)
    Supervisor.objects.bulk_create(Supervisor(attempt=attempt, host=host) for host in sorted({p.host for p in plan}))
    return attempt


def _take(attempt: Attempt, plan: tuple[ProcessAssignment, ...]) -> None:
    """All devices of the plan or Taken.

    Locked in the order of their keys, so that two control processes cannot wait for one another, and without a join:
    PostgreSQL looks again at the rows it waited for, not at rows of other tables.
    """
    hosts = dict(Host.objects.filter(name__in={process.host for process in plan}).values_list("name", "pk"))
    wanted = Q()
    for process in plan:
        wanted |= Q(host_id=hosts.get(process.host), kind=process.kind, index__in=process.devices)
    free = Device.objects.select_for_update().filter(wanted, attempt__isnull=True).order_by("pk")
    keys = list(free.values_list("pk", flat=True))
    taken = Device.objects.filter(pk__in=keys, attempt__isnull=True).update(attempt=attempt)
    if taken != sum(len(process.devices) for process in plan):
        raise Taken


def _row(attempt: Attempt, process: ProcessAssignment, spec: JobSpec, plan: tuple[ProcessAssignment, ...]) -> Process:
    return Process(
        attempt=attempt,
        name=process.name,
        role=process.role,
        index=process.index,
        host=process.host,
        chief=Place(spec=spec, process=process, processes=plan, run="").chief,
        devices=[f"{process.kind}:{index}" for index in process.devices],
        replicas=list(process.replicas),
    )
