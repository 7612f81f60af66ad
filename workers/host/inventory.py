"""What this host is: devices, cores, memory, versions, and which datasets it cannot load. Imports no TensorFlow."""

from __future__ import annotations

import functools
import importlib.metadata
import logging
import os
import platform
import time
import tomllib
from pathlib import Path

import psutil
import pynvml

from workers.contract import catalog
from workers.contract.inventory import DeviceInfo, Inventory
from workers.gang import data_home
from workers.host.runs import run_folders
from workers.host.settings import ROOT, HostSettings
from workers.host.tpus import tpus

PROBE_SECONDS = 60.0
TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu")

log = logging.getLogger(__name__)


class Surveyor:
    """Makes the inventory; asks the datasets again only every minute."""

    def __init__(self, settings: HostSettings) -> None:
        self._settings = settings
        self._unavailable: dict[str, str] = {}
        self._probed = -PROBE_SECONDS

    def survey(self) -> Inventory:
        """The host as it is now."""
        settings = self._settings
        if time.monotonic() - self._probed >= PROBE_SECONDS:
            self._unavailable, self._probed = unavailable_datasets(), time.monotonic()
        return Inventory(
            host=settings.lockstep_host,
            address=settings.address,
            cores=os.cpu_count() or 1,
            memory_bytes=psutil.virtual_memory().total,
            devices=(*gpus(), *tpus(cores=settings.lockstep_tpu_cores), *cpu_slots(settings.lockstep_cpu_devices)),
            versions=versions(),
            unavailable=self._unavailable,
            port_range=settings.port_range,
            load=os.getloadavg()[0],
            attempts=tuple(run.attempt for run in run_folders(settings.lockstep_runs) if run.alive),
        )


def cpu_slots(count: int) -> tuple[DeviceInfo, ...]:
    """Logical CPU devices: places for processes, all on the same cores."""
    name = cpu_name()
    return tuple(DeviceInfo(kind="cpu", index=index, name=name) for index in range(count))


@functools.cache
def cpu_name() -> str:
    """The processor's model, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        log.debug("no /proc/cpuinfo")
    return platform.processor() or platform.machine() or "CPU"


def gpus() -> tuple[DeviceInfo, ...]:
    """The NVIDIA GPUs that this host may use, by NVML; none where there is no driver."""
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError:
        return ()
    found = (_gpu(index) for index in range(count) if _visible(index))
    return tuple(device for device in found if device is not None)


def _gpu(index: int) -> DeviceInfo | None:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError as error:
        log.warning("GPU %s is left out: %s", index, error)
        return None
    name, memory = "NVIDIA GPU", None
    try:
        told = pynvml.nvmlDeviceGetName(handle)
        name = told.decode() if isinstance(told, bytes) else str(told)
    except pynvml.NVMLError:
        log.debug("GPU %s does not tell its name", index)
    try:
        memory = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    except pynvml.NVMLError:
        log.debug("GPU %s does not tell its memory (MIG or vGPU)", index)
    return DeviceInfo(kind="gpu", index=index, name=name, memory_bytes=memory)


def _visible(index: int) -> bool:
    """CUDA_VISIBLE_DEVICES of the host daemon, when it is a list of numbers, limits what jobs are given."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        return True
    parts = [part.strip() for part in given.split(",") if part.strip()]
    if not all(part.lstrip("-").isdigit() for part in parts):
        return True
    return str(index) in parts


@functools.cache
def versions() -> dict[str, str]:
    """Versions of what a job's result depends on, from the installed packages' metadata."""
    found = {"python": platform.python_version(), "lockstep": _lockstep_version()}
    for name, packages in (("tensorflow", TENSORFLOWS), ("keras", ("keras",))):
        for package in packages:
            try:
                found[name] = importlib.metadata.version(package)
                break
            except importlib.metadata.PackageNotFoundError:
                continue
    return found


def _lockstep_version() -> str:
    try:
        return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return "unknown"


def unavailable_datasets() -> dict[str, str]:
    """Datasets that this host cannot load with their default options, and why."""
    reasons = {}
    for name, entry in catalog.entries("dataset").items():
        probe = getattr(entry.module, "probe", None)
        if probe is None:
            continue
        try:
            reason = probe(entry.options(), data_home(os.environ))
        except Exception as error:  # noqa: BLE001  a plugin's fault must not silence the host
            reason = f"its probe failed: {error!r}"
        if reason:
            reasons[name] = str(reason)
    return reasons
