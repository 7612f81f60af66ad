"""What ingest hands over of the hosts' words: hosts with their devices, living supervisors, and its own ear."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from webapp.cluster.clock import database_now
from webapp.cluster.models import Device, Host, Listening
from webapp.jobs.models import Supervisor
from workers.contract.inventory import DeviceInfo, Inventory

EAR_GAP = timedelta(seconds=5)
"""Ingest stamps its ear each second; a longer gap means that silence was ours, not the hosts'."""


def hear_host(inventory: Inventory) -> None:
    """Store what a host says of itself. New devices are offered at once; vanished ones go when nobody holds them."""
    with transaction.atomic(savepoint=False):
        told = {"heard": database_now(), "inventory_json": inventory.model_dump(mode="json", exclude={"selftest"})}
        if inventory.selftest is not None:  # told when it changes, and once a minute
            told["selftest_json"] = inventory.selftest.model_dump(mode="json")
        host, created = Host.objects.get_or_create(name=inventory.host, defaults=told)
        if not created:
            Host.objects.filter(pk=host.pk).update(**told)
        _take_devices(host, inventory.devices)


def hear_attempt(attempt_id: int, host: str) -> bool:
    """A supervisor is alive. False when there is no such attempt on that host."""
    return Supervisor.objects.filter(attempt_id=attempt_id, host=host).update(heard=database_now()) == 1


def ingest_listening() -> None:
    """Ingest calls this each second in which it could read Redis."""
    now = database_now()
    kept = Listening.objects.filter(pk=1, last__gte=now - EAR_GAP).update(last=now)
    if not kept:
        Listening.objects.update_or_create(pk=1, defaults={"since": now, "last": now})


def _take_devices(host: Host, told: tuple[DeviceInfo, ...]) -> None:
    known = {(device.kind, device.index): device for device in host.devices.all()}
    wanted = {(info.kind, info.index): info for info in told}
    for key, info in wanted.items():
        facts = {"name": info.name[:100], "memory_bytes": info.memory_bytes}
        device = known.get(key)
        if device is None:
            Device.objects.get_or_create(host=host, kind=info.kind, index=info.index, defaults=facts)
        elif (device.name, device.memory_bytes) != (facts["name"], facts["memory_bytes"]):
            Device.objects.filter(pk=device.pk).update(**facts)
    gone = Q(pk__in=[device.pk for key, device in known.items() if key not in wanted])
    if any(key not in wanted for key in known):
        Device.objects.filter(gone, attempt__isnull=True).delete()
