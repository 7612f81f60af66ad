"""Where a job's processes go: a function of its layout and of what hosts offer alone, but for the lot of the ports.

All processes of a job get their places at once or none does. One host for all is preferred (no network between them,
and the fullest host that fits leaves the emptier ones to larger jobs); else they spread over hosts.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from workers.contract.layout import DeviceKind, Layout, ProcessAssignment, ProcessShape, assign

Slots = Mapping[DeviceKind, tuple[int, ...]]
NOUNS: dict[DeviceKind, str] = {"cpu": "CPU device", "gpu": "GPU", "tpu": "TPU core"}


@dataclasses.dataclass(frozen=True)
class Offer:
    """What one host has: device indexes by kind, all of them (`total`) and those that nobody holds (`free`).

    Hosts may share a machine and so its ports: `taken_ports` are those of `address`.
    """

    host: str
    address: str
    total: Slots
    free: Slots
    port_range: tuple[int, int] = (20000, 29999)
    taken_ports: frozenset[int] = frozenset()


class Waiting(NamedTuple):
    """Why a job cannot start now, in words that fit behind `queued: `."""

    reason: str


class _Seat(NamedTuple):
    offer: Offer
    kind: DeviceKind
    devices: tuple[int, ...]


Seats = dict[str, _Seat]


def place(layout: Layout, offers: Sequence[Offer]) -> tuple[ProcessAssignment, ...] | Waiting:
    """A place for each process, in the layout's order, or the reason why there is none now."""
    if not offers:
        return Waiting("waiting for a training host, none is online")
    kind = auto_kind(layout, offers)
    seats = _seat_all(layout, kind, offers, "free")
    if seats is None:
        return Waiting(shortage(layout, offers) or _busy(layout, kind, offers))
    ports = _ports(layout, seats)
    if isinstance(ports, Waiting):
        return ports
    assignments, first_replica = [], 0
    for shape in layout.processes:
        seat = seats[shape.name]
        assignments.append(
            assign(
                shape,
                first_replica=first_replica,
                host=seat.offer.host,
                address=seat.offer.address,
                kind=seat.kind,
                devices=seat.devices,
                port=ports[shape.name],
            )
        )
        first_replica += shape.replicas
    return tuple(assignments)


def auto_kind(layout: Layout, offers: Sequence[Offer]) -> DeviceKind:
    """What `auto` means here: GPUs where the hosts have enough of them for all processes, busy or not; else the CPU."""
    return "gpu" if _seat_all(layout, "gpu", offers, "total") is not None else "cpu"


def shortage(layout: Layout, offers: Sequence[Offer]) -> str:
    """Why these hosts could not run it even if nothing else ran on them; empty when they could."""
    kind = auto_kind(layout, offers)
    if _seat_all(layout, kind, offers, "total") is not None:
        return ""
    for shape in layout.processes:
        for index in shape.indexes:
            if not any(index in offer.total.get(_kind(shape, kind), ()) for offer in offers):
                return f"names {_kind(shape, kind)}:{index}, which no host has"
    for wanted, count in _needs(layout, kind).items():
        there = sum(len(offer.total.get(wanted, ())) for offer in offers)
        if there < count:
            return f"needs {_some(count, wanted)}, the hosts have {there}"
    widest = max(layout.processes, key=lambda shape: shape.devices)
    wanted = _kind(widest, kind)
    largest = max(len(offer.total.get(wanted, ())) for offer in offers)
    if largest < widest.devices:
        return f"needs {_some(widest.devices, wanted)} on one host, the largest has {largest}"
    return "needs its devices in other groups than the hosts have them"


def _busy(layout: Layout, kind: DeviceKind, offers: Sequence[Offer]) -> str:
    for wanted, count in _needs(layout, kind).items():
        free = sum(len(offer.free.get(wanted, ())) for offer in offers)
        if free < count:
            more = "more " if free else ""
            return f"waiting for {_some(count - free, wanted, more)}"
    named = [(shape, index) for shape in layout.processes for index in shape.indexes]
    if named:
        names = ", ".join(dict.fromkeys(f"{_kind(shape, kind)}:{index}" for shape, index in named))
        return f"waiting for {names} to be free on one host"
    widest = max(layout.processes, key=lambda shape: shape.devices)
    return f"waiting for {_some(widest.devices, _kind(widest, kind), 'free ')} on one host"


def _seat_all(
    layout: Layout, kind: DeviceKind, offers: Sequence[Offer], part: Literal["free", "total"]
) -> Seats | None:
    def roomy(offer: Offer) -> tuple[int, str]:
        return sum(len(getattr(offer, part).get(wanted, ())) for wanted in _needs(layout, kind)), offer.host

    by_room = sorted(offers, key=roomy)
    for offer in by_room:
        seats = _seat(layout, kind, [offer], part)
        if seats is not None:
            return seats
    return _seat(layout, kind, by_room[::-1], part)


def _seat(layout: Layout, kind: DeviceKind, offers: Sequence[Offer], part: str) -> Seats | None:
    """First fit, the demanding processes first; those that need no device join the first host that has one."""
    left = {offer.host: {name: list(slots) for name, slots in getattr(offer, part).items()} for offer in offers}
    seats: Seats = {}
    for shape in sorted(layout.processes, key=lambda shape: (not shape.indexes, -shape.devices)):
        wanted = _kind(shape, kind)
        for offer in _used_first(offers, seats):
            devices = _pick(shape, left[offer.host].get(wanted, []))
            if devices is not None:
                left[offer.host][wanted] = [i for i in left[offer.host].get(wanted, []) if i not in devices]
                seats[shape.name] = _Seat(offer, wanted, devices)
                break
        else:
            return None
    return seats


def _used_first(offers: Sequence[Offer], seats: Seats) -> list[Offer]:
    used = {seat.offer.host for seat in seats.values()}
    return sorted(offers, key=lambda offer: offer.host not in used)


def _pick(shape: ProcessShape, slots: Sequence[int]) -> tuple[int, ...] | None:
    if shape.indexes:
        return shape.indexes if set(shape.indexes) <= set(slots) else None
    return tuple(sorted(slots)[: shape.devices]) if len(slots) >= shape.devices else None


def _kind(shape: ProcessShape, auto: DeviceKind) -> DeviceKind:
    if shape.kind != "auto":
        return shape.kind
    return auto if shape.devices else "cpu"


def _needs(layout: Layout, auto: DeviceKind) -> dict[DeviceKind, int]:
    needs: dict[DeviceKind, int] = {}
    for shape in layout.processes:
        count = len(shape.indexes) or shape.devices
        if count:
            needs[_kind(shape, auto)] = needs.get(_kind(shape, auto), 0) + count
    return needs


def _ports(layout: Layout, seats: Seats) -> dict[str, int] | Waiting:
    """0 on a single host, whose supervisor picks; else one of each host's range that no job has at that address.

    Drawn by lot: another program of the host may have a port that we know nothing of, and would break every job.
    """
    if len({seat.offer.host for seat in seats.values()}) == 1:
        return dict.fromkeys(seats, 0)
    ports: dict[str, int] = {}
    taken: dict[str, set[int]] = {}
    for seat in seats.values():
        taken.setdefault(seat.offer.address, set()).update(seat.offer.taken_ports)
    for shape in layout.processes:
        offer = seats[shape.name].offer
        low, high = offer.port_range
        free = [port for port in range(low, high + 1) if port not in taken[offer.address]]
        if not free:
            return Waiting(f"waiting for a free port between {low} and {high} on {offer.host}")
        ports[shape.name] = random.choice(free)
        taken[offer.address].add(ports[shape.name])
    return ports


def _some(count: int, kind: DeviceKind, adjective: str = "") -> str:
    return f"{count} {adjective}{NOUNS[kind]}{'' if count == 1 else 's'}"
