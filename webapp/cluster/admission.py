"""What the hosts say of a spec: refused at submit instead of failing at run, and whether it could start now."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence

from webapp.cluster import offers
from webapp.cluster.models import Host
from webapp.cluster.offers import HostOffer
from webapp.cluster.placing import Waiting, auto_kind, place, shortage
from webapp.jobs.models import Job
from workers.contract import catalog
from workers.contract.layout import ProcessAssignment
from workers.contract.library import references
from workers.contract.problems import Problem
from workers.contract.selftest import Case, case_of, nearest
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
    hosts = known()
    found = dataset_problems([spec.dataset.name]) + _device_problems(spec, hosts) + _kind_problems(spec, hosts)
    return _file_problems(spec) + (found or tried_problems(spec, hosts, case_of(spec)))


def known() -> list[HostOffer]:
    """The offers by which a spec is judged: a host that restarts still counts."""
    return offers.read(Host.objects.known())


def tried_problems(spec: JobSpec, known: Sequence[HostOffer], case: Case) -> list[Problem]:
    """What the hosts' self-tests say of it: refused when those where its case has not failed could not run it."""
    can_load = [each for each in known if spec.dataset.name not in each.unavailable]
    failing = [each for each in can_load if each.failure(case)]
    fine = offers.able(can_load, spec.dataset.name, case)
    if not failing or (fine and not shortage(spec.layout, fine)):
        return []
    working = {name for each in can_load if each.selftest is not None for name in each.selftest.passed}
    path, remedy = nearest(case, working)
    sentences = dict.fromkeys(each.failure(case) for each in failing)
    hosts = ", ".join(each.offer.host for each in failing[:8])
    message = f"failed in the self-test of {hosts}: {' / '.join(sentences).rstrip('.')}"
    return [Problem(path, message, _value_at(spec, path), remedy)]


def outlook(spec: JobSpec) -> Outlook:
    """What would happen if `spec` were submitted now."""
    online = offers.read(Host.objects.online())
    able = offers.able(online, spec.dataset.name, case_of(spec))
    ahead = Job.objects.queued().count()
    if online and not able:
        return Outlook(False, offers.lack(online, spec), ahead=ahead)
    plan = place(spec.layout, able)
    if isinstance(plan, Waiting):
        return Outlook(False, plan.reason, ahead=ahead)
    return Outlook(True, "", tuple(_placement(process) for process in plan), ahead)


def _value_at(spec: JobSpec, path: str) -> object:
    return functools.reduce(getattr, path.split("."), spec)


def _placement(process: ProcessAssignment) -> Placement:
    devices = tuple(f"{process.kind}:{index}" for index in process.devices)
    return Placement(process.name, process.host, devices, process.replicas)


def _file_problems(spec: JobSpec) -> list[Problem]:
    """A file of a host is nobody's to open from a browser, and nothing says that the next host has the same one."""
    found = {"training.initial_model": spec.training.initial_model}
    by_hand = getattr(catalog.find("dataset", spec.dataset.name).module, "by_hand", False)
    if by_hand and "dataset" not in references(spec):
        found["dataset.options.file"] = str(spec.dataset.options.get("file") or "")
    message, remedy = "is a file of one host, which the web cannot read", "python -m workers.training"
    remedy = f"Remove it here, or run the spec by hand on that host: {remedy}"
    return [Problem(path, message, given, remedy) for path, given in found.items() if given is not None]


def dataset_problems(names: Iterable[str]) -> list[Problem]:
    """Which of these datasets no host that is online can load, and why; none while none is online."""
    online = offers.read(Host.objects.online())
    return [_unloadable(name, online) for name in names if online and not offers.able(online, name)]


def _unloadable(name: str, online: Sequence[HostOffer]) -> Problem:
    reasons: dict[str, list[str]] = {}
    for each in online:
        reasons.setdefault(each.unavailable[name], []).append(each.offer.host)
    remedy = "; ".join(f"{', '.join(hosts)}: {reason}" for reason, hosts in reasons.items())
    return Problem("dataset.name", "cannot be loaded by any host that is online", name, remedy)


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
