"""What the hosts say of a spec: refused at submit instead of failing at run, and whether it could start now."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from webapp.cluster import offers
from webapp.cluster.models import Host
from webapp.cluster.offers import HostOffer
from webapp.cluster.placing import Waiting, auto_kind, place, shortage
from webapp.jobs.models import Job
from workers.contract import catalog
from workers.contract.layout import ProcessAssignment
from workers.contract.problems import Problem
from workers.contract.spec import JobSpec


@dataclasses.dataclass(frozen=True)
class Placement:
    """One process of a plan: `devices` as shown (`gpu:1`), `replicas` by their numbers in the job."""

    process: str
    host: str
    devices: tuple[str, ...]
    replicas: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Outlook:
    """Whether a spec could start now, where, and else why not. `ahead` counts the jobs that are queued already."""

    can_start_now: bool
    reason: str
    placements: tuple[Placement, ...] = ()
    ahead: int = 0


def problems(spec: JobSpec) -> list[Problem]:
    """What no host could honour. Hosts heard within a day count; with none at all a job is accepted and waits."""
    known = offers.read(Host.objects.known())
    return _file_problems(spec) + _dataset_problems(spec) + _device_problems(spec, known) + _kind_problems(spec, known)


def outlook(spec: JobSpec) -> Outlook:
    """What would happen if `spec` were submitted now."""
    online = offers.read(Host.objects.online())
    able = offers.able(online, spec.dataset.name)
    ahead = Job.objects.queued().count()
    if online and not able:
        return Outlook(False, f"waiting for a host that can load {spec.dataset.name}", ahead=ahead)
    plan = place(spec.layout, able)
    if isinstance(plan, Waiting):
        return Outlook(False, plan.reason, ahead=ahead)
    return Outlook(True, "", tuple(_placement(process) for process in plan), ahead)


def _placement(process: ProcessAssignment) -> Placement:
    devices = tuple(f"{process.kind}:{index}" for index in process.devices)
    return Placement(process.name, process.host, devices, process.replicas)


def _file_problems(spec: JobSpec) -> list[Problem]:
    """A file of a host is nobody's to open from a browser, and nothing says that the next host has the same one."""
    given = spec.training.initial_model
    if given is None:
        return []
    remedy = "Remove it here, or run the spec by hand on that host: python -m workers.training"
    return [Problem("training.initial_model", "is a file of one host, which the web cannot read", given, remedy)]


def _dataset_problems(spec: JobSpec) -> list[Problem]:
    online = offers.read(Host.objects.online())
    name = spec.dataset.name
    if not online or offers.able(online, name):
        return []
    reasons: dict[str, list[str]] = {}
    for each in online:
        reasons.setdefault(each.unavailable[name], []).append(each.offer.host)
    remedy = "; ".join(f"{', '.join(hosts)}: {reason}" for reason, hosts in reasons.items())
    return [Problem("dataset.name", "cannot be loaded by any host that is online", name, remedy)]


def _device_problems(spec: JobSpec, known: Sequence[HostOffer]) -> list[Problem]:
    if not known:
        return []
    # A dataset that none can load is told by its own problem; the devices are then judged over all hosts.
    able = offers.able(known, spec.dataset.name) or [each.offer for each in known]
    missing = shortage(spec.layout, able)
    if not missing:
        return []
    hosts = "; ".join(f"{each.host} has {_inventory(each.total)}" for each in able[:8])
    return [Problem("strategy.options", missing, None, f"Ask for what there is: {hosts}")]


def _inventory(total: offers.Slots) -> str:
    return ", ".join(f"{len(slots)} {kind}" for kind, slots in total.items() if slots) or "no devices"


def _kind_problems(spec: JobSpec, known: Sequence[HostOffer]) -> list[Problem]:
    """What the strategy refuses once its `device_type: auto` is decided by the hosts there are (NCCL without GPUs)."""
    entry = catalog.find("strategy", spec.strategy.name)
    options = spec.options_of("strategy")
    if not known or getattr(options, "device_type", None) != "auto" or not hasattr(entry.module, "check"):
        return []
    kind = auto_kind(spec.layout, offers.able(known, spec.dataset.name))
    found: list[Problem] = entry.module.check(options.model_copy(update={"device_type": kind}))
    why = f"{kind} is what auto means here: no host has enough GPUs" if kind == "cpu" else "auto means gpu here"
    return [dataclasses.replace(each, message=f"{each.message} ({why})").under("strategy.options") for each in found]
