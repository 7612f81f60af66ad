"""Reads how busy this process's replicas keep their devices, about once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import psutil

from workers.contract.layout import ProcessAssignment
from workers.training.devices import cores
from workers.training.reporter import Reporter, Values

PERIOD_SECONDS = 1.0

Gauge = Callable[[], dict[str, float]]


class Gauges:
    """A thread that reports `utilization` in % and `memory` in bytes of every replica of this process."""

    def __init__(self, process: ProcessAssignment, reporter: Reporter) -> None:
        self._reporter = reporter
        self._readers = _readers(process)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gauges", daemon=True)

    def start(self) -> None:
        """Begin; the first reading covers the time from here."""
        self._thread.start()

    def stop(self) -> None:
        """One last reading, so that short jobs have one too."""
        self._end.set()
        self._thread.join(timeout=2)

    def _run(self) -> None:
        ended = False
        while not ended:
            ended = self._end.wait(PERIOD_SECONDS)
            try:
                self._read(time.time())
            except OSError:
                # A full disk: the training thread is told as well, and says so.
                return

    def _read(self, moment: float) -> None:
        known: dict[Gauge, dict[str, float]] = {}
        for replica, gauge in self._readers:
            if gauge not in known:
                known[gauge] = gauge()
            if known[gauge]:
                self._reporter.write(Values(None, None, moment, known[gauge], replica))


def _readers(process: ProcessAssignment) -> list[tuple[int, Gauge]]:
    """Replica and gauge; replicas that share a device or a process share the gauge.

    One that several processes hold is measured in the first of them, where it is numbered.
    """
    if not process.replicas:
        return []
    if process.kind != "gpu":
        gauge = _process_gauge()
        return [(replica, gauge) for replica in process.replicas]
    gauges = [_gpu_gauge(index) for index in process.devices]
    if process.shards > 1:
        rows = [gauges[first : first + process.shards] for first in range(0, len(gauges), process.shards)]
        return [(replica, _together(row)) for replica, row in zip(process.replicas, rows, strict=True)]
    return [(replica, gauges[place // process.split]) for place, replica in enumerate(process.replicas)]


def _together(gauges: list[Gauge]) -> Gauge:
    """Of a model copy on several devices: their mean utilization and all their memory."""

    def read() -> dict[str, float]:
        found = [gauge() for gauge in gauges]
        values = {name: [each[name] for each in found if name in each] for name in ("utilization", "memory")}
        whole = {name: some for name, some in values.items() if len(some) == len(gauges)}
        return {name: sum(some) / (len(some) if name == "utilization" else 1) for name, some in whole.items()}

    return read


def _process_gauge() -> Gauge:
    """The process's share of all cores it may use, in %, and its resident memory."""
    this = psutil.Process()
    this.cpu_percent()
    count = cores()

    def read() -> dict[str, float]:
        return {"utilization": min(100.0, this.cpu_percent() / count), "memory": float(this.memory_info().rss)}

    return read


def _gpu_gauge(index: int) -> Gauge:
    """NVML's figures; what a driver or a MIG slice does not offer is left out."""
    import pynvml

    def ask(function: Callable[[Any], Any], field: str) -> float | None:
        try:
            return float(getattr(function(pynvml.nvmlDeviceGetHandleByIndex(index)), field))
        except pynvml.NVMLError:
            return None

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return dict

    def read() -> dict[str, float]:
        found = {
            "utilization": ask(pynvml.nvmlDeviceGetUtilizationRates, "gpu"),
            "memory": ask(pynvml.nvmlDeviceGetMemoryInfo, "used"),
        }
        return {name: value for name, value in found.items() if value is not None}

    return read
