"""Turns silence into an end, and gives the devices of ended attempts back. Nothing stays "running" for ever.

Silence counts only while ingest was listening: a Redis or an ingest that is away for an hour reaps nothing.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q

from webapp.cluster import dispatch
from webapp.cluster.clock import database_now
from webapp.cluster.hearing import EAR_GAP
from webapp.cluster.models import Device, Host, Listening
from webapp.jobs import transitions
from webapp.jobs.models import Attempt, State, Supervisor
from workers.contract.wire import LEASE_SECONDS

LEASE = timedelta(seconds=LEASE_SECONDS)
START_LEASE = 2 * LEASE
"""For the first word: a loaded host takes its time to start a supervisor, and nothing is lost by waiting."""
STOP_PATIENCE = timedelta(seconds=5)
"""A stop of an attempt of which no host was ever heard is not waited for any longer."""
VOID_AGAIN = timedelta(seconds=3)
VOID_FOR = timedelta(minutes=10)

log = logging.getLogger(__name__)


def reap() -> list[int]:
    """End what is silent; the ids of the jobs that ended."""
    ended = [attempt.job_id for attempt in _unheard_stops() if _cancel(attempt)]
    silent: dict[int, Supervisor] = {}
    for supervisor in _silent():
        silent.setdefault(supervisor.attempt_id, supervisor)
    return ended + [s.attempt.job_id for s in silent.values() if _give_up(s)]


def release() -> int:
    """Free the devices of ended attempts; how many.

    A host that had no last word may still run the gang, so its devices wait until the host itself, heard after the end,
    no longer names the attempt.
    """
    held = Device.objects.filter(attempt__ended__isnull=False).select_related("attempt", "host")
    freed = 0
    for device in held:
        if _is_over(device):
            freed += Device.objects.filter(pk=device.pk, attempt=device.attempt).update(attempt=None)
    return freed


def void_ended() -> None:
    """Repeat the order `void` for attempts that ended without a host's last word. Raises broker.BrokerAway."""
    now = database_now()
    recent = Q(attempt__ended__gt=now - VOID_FOR) | Q(heard__gt=now - LEASE)
    again = Q(stop_sent__isnull=True) | Q(stop_sent__lt=F("attempt__ended")) | Q(stop_sent__lt=now - VOID_AGAIN)
    due = Supervisor.objects.filter(recent, again, attempt__ended__isnull=False, outcome="")
    found = list(due.values_list("pk", "attempt_id"))
    dispatch.order({attempt for _, attempt in found}, "void")
    if found:
        Supervisor.objects.filter(pk__in=[pk for pk, _ in found]).update(stop_sent=now)


def _silent() -> list[Supervisor]:
    now = database_now()
    ear = Listening.objects.filter(pk=1).first()
    if ear is None or now - ear.last > EAR_GAP or now - ear.since < LEASE:
        return []
    awaited = now - START_LEASE
    never = Q(heard__isnull=True, attempt__created__lt=awaited) if ear.since < awaited else Q(pk__in=())
    living = Supervisor.objects.filter(attempt__ended__isnull=True, outcome="")
    silent = living.filter(never | Q(heard__lt=now - LEASE)).select_related("attempt__job")
    return list(silent.defer("attempt__job__spec_json").order_by("attempt_id", "heard", "host"))


def _give_up(supervisor: Supervisor) -> bool:
    job = supervisor.attempt.job
    if supervisor.heard is None:
        cause = f"Host {supervisor.host} did not start it within {START_LEASE.seconds} s: does its Celery worker run?"
    elif Host.objects.filter(name=supervisor.host, heard__gt=database_now() - EAR_GAP).exists():
        cause = (
            f"Its supervisor on {supervisor.host} has been silent for {LEASE_SECONDS:.0f} s although the host itself "
            "answers: it was stopped, or cannot write to its disk."
        )
    else:
        cause = f"Host {supervisor.host} has been silent for {LEASE_SECONDS:.0f} s: it crashed or lost its network."
    log.warning("attempt %s is given up: %s", supervisor.attempt_id, cause)
    if job.stop_requested is not None:
        cause = f"Stopped by {job.stop_requested_by}. {cause}"
        return transitions.end(supervisor.attempt, state=State.CANCELLED, cause=cause)
    return transitions.end(supervisor.attempt, state=State.FAILED, cause=cause)


def _unheard_stops() -> list[Attempt]:
    heard = Supervisor.objects.filter(Q(heard__isnull=False) | ~Q(outcome=""), attempt=OuterRef("pk"))
    waiting = Attempt.objects.live().filter(
        ~Exists(heard), job__state=State.STOPPING, job__stop_requested__lt=database_now() - STOP_PATIENCE
    )
    return list(waiting.select_related("job").defer("job__spec_json", "assignment"))


def _cancel(attempt: Attempt) -> bool:
    cause = f"Stopped by {attempt.job.stop_requested_by} before a host had started it."
    return transitions.end(attempt, state=State.CANCELLED, cause=cause)


def _is_over(device: Device) -> bool:
    attempt, host = device.attempt, device.host
    if attempt is None or attempt.ended is None:
        return False
    supervisor = Supervisor.objects.filter(attempt=attempt, host=host.name).first()
    if supervisor is None or supervisor.outcome or supervisor.sent is None:
        return True
    return _heard_after(host.heard, attempt.ended) and attempt.pk not in host.inventory.attempts


def _heard_after(heard: datetime, ended: datetime) -> bool:
    """A second's grace, for an inventory that was written before the end and read after it."""
    return heard > ended + timedelta(seconds=1)
