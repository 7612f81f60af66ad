"""Training hosts for the tests of the cluster, heard as ingest hears them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from webapp.cluster import hearing
from webapp.cluster.models import Host, Listening
from webapp.jobs.models import Attempt, Supervisor
from workers.contract.inventory import DeviceInfo, Inventory, SelfTest
from workers.contract.layout import DeviceKind


def inventory(name: str = "h1", *, cpus: int = 2, gpus: int = 0, **changes: Any) -> Inventory:
    kinds: list[tuple[DeviceKind, int]] = [("cpu", cpus), ("gpu", gpus)]
    devices = tuple(
        DeviceInfo(kind=kind, index=i, name=f"{kind} {i}", memory_bytes=1 << 30)
        for kind, count in kinds
        for i in range(count)
    )
    facts = {"host": name, "address": "10.0.0.1", "cores": 4, "memory_bytes": 1 << 34, "devices": devices}
    return Inventory.model_validate({**facts, **changes})


def hear(name: str = "h1", **changes: Any) -> Host:
    hearing.hear_host(inventory(name, **changes))
    return Host.objects.get(name=name)


def tried(failures: dict[str, str] | None = None, *passed: str) -> SelfTest:
    """What a host's self-test showed."""
    return SelfTest(key="tensorflow 2, cpu", passed=passed, failures=failures or {})


def listen(since_seconds: float = 3600, last_seconds: float = 0) -> None:
    """Ingest has been listening since then, and last was heard to do so then."""
    now = timezone.now()
    since, last = now - timedelta(seconds=since_seconds), now - timedelta(seconds=last_seconds)
    Listening.objects.update_or_create(pk=1, defaults={"since": since, "last": last})


def age(attempt: Attempt, seconds: float, **supervisor: Any) -> None:
    """Make the attempt that old; `supervisor` fields are seconds ago too, or None."""
    now = timezone.now()
    Attempt.objects.filter(pk=attempt.pk).update(created=now - timedelta(seconds=seconds))
    fields = {name: ago if ago is None else now - timedelta(seconds=ago) for name, ago in supervisor.items()}
    if fields:
        Supervisor.objects.filter(attempt=attempt).update(**fields)
