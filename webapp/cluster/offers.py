"""What the hosts offer at this moment, read from the database for the pure functions of placing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from django.db.models import Q

from webapp.cluster.clock import database_now
from webapp.cluster.models import Device, Host, HostQuerySet
from webapp.cluster.placing import Offer, Slots
from webapp.jobs.models import Attempt
from workers.contract.inventory import Inventory, SelfTest
from workers.contract.layout import DeviceKind
from workers.contract.selftest import Case, case_of, failure
from workers.contract.spec import JobSpec

__all__ = ["HostOffer", "Slots", "able", "lack", "read"]

PORT_REST = timedelta(minutes=2)
"""Ports of an ended attempt are left alone for so long: the kernel may still hold them."""


class HostOffer(NamedTuple):
    """A host's offer, why it cannot load the datasets that it cannot load, and what its self-test showed."""

    offer: Offer
    unavailable: dict[str, str]
    selftest: SelfTest | None = None

    def failure(self, case: Case) -> str:
        """The sentence with which the case failed there; empty when it passed or was never tried."""
        return failure(case, self.selftest) if self.selftest is not None else ""


def read(hosts: HostQuerySet) -> list[HostOffer]:
    """The offers of `hosts`; a device that the host no longer names is not offered. Three queries."""
    devices: dict[int, list[Device]] = defaultdict(list)
    found = list(hosts)
    for device in Device.objects.filter(host__in=found).order_by("kind", "index"):
        devices[device.host_id].append(device)
    ports = _taken_ports() if len(found) > 1 else {}
    return [_offer(host, devices[host.pk], ports) for host in found]


def able(offers: Sequence[HostOffer], dataset: str, case: Case | None = None) -> list[Offer]:
    """The offers of those hosts that can load `dataset`, and where `case` has not failed."""
    there = [each for each in offers if dataset not in each.unavailable]
    return [each.offer for each in there if case is None or not each.failure(case)]


def lack(offers: Sequence[HostOffer], spec: JobSpec) -> str:
    """Why none of these hosts is able to run it, in words that fit behind `queued: `."""
    if any(spec.dataset.name not in each.unavailable for each in offers):
        return f"waiting for a host whose self-test passed {case_of(spec).name}"
    return f"waiting for a host with {spec.dataset.name}"


def _offer(host: Host, devices: Sequence[Device], ports: dict[str, set[int]]) -> HostOffer:
    inventory = host.inventory
    told = {(info.kind, info.index) for info in inventory.devices}
    there = [device for device in devices if (device.kind, device.index) in told]
    offer = Offer(
        host=host.name,
        address=inventory.address,
        total=_slots(inventory, [(device.kind, device.index) for device in there]),
        free=_slots(inventory, [(device.kind, device.index) for device in there if device.attempt_id is None]),
        port_range=inventory.port_range,
        taken_ports=frozenset(ports.get(inventory.address, ())),
    )
    return HostOffer(offer, inventory.unavailable, host.selftest)


def _slots(inventory: Inventory, keys: Sequence[tuple[str, int]]) -> dict[DeviceKind, tuple[int, ...]]:
    kinds = dict.fromkeys(info.kind for info in inventory.devices)
    return {kind: tuple(index for name, index in keys if name == kind) for kind in kinds}


def _taken_ports() -> dict[str, set[int]]:
    """By address."""
    recent = Q(ended__isnull=True) | Q(ended__gt=database_now() - PORT_REST)
    taken: dict[str, set[int]] = defaultdict(set)
    for processes in Attempt.objects.filter(recent).values_list("assignment__processes", flat=True):
        for process in processes or ():
            if process["port"]:
                taken[process["address"]].add(process["port"])
    return taken
