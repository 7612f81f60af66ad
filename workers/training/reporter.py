"""The engine's one way to tell anything: events into a file that only grows.

Promises: `write` never waits for the disk; lines are whole and flushed, the first point at once, later ones within
FLUSH_SECONDS; what was written before `close` is in the file when `close` returns, and a full disk is raised, not lost.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.contract.events import Event, Phase, PhaseName, Points, SeriesPoints, to_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLUSH_SECONDS = 0.25
MOST_POINTS = 5_000
"""In one line, so that no line grows without bound."""


@dataclasses.dataclass(frozen=True)
class CallReport:
    """One device call, taken between `begin` and `end` (seconds since 1970); `values` hold for all of it.

    `trained` is what each step from `first` on was trained to, arrays [K] by series name, the loss among them. Where
    each step was one replica's, `replicas` says whose, and the losses are told under their numbers as well.
    """

    first: int
    epoch: int
    begin: float
    end: float
    trained: dict[str, NDArray[Any]]
    values: dict[str, float]
    replicas: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Steps of the call."""
        return len(self.trained["loss"])


@dataclasses.dataclass(frozen=True)
class Values:
    """Single points at `step`, by series name; `replica` is None for the whole job."""

    step: int | None
    epoch: int | None
    time: float
    values: dict[str, float]
    replica: int | None = None


class _Stop:
    pass


class Reporter:
    """Events of one process. `write` from any thread; a thread of its own turns items into lines."""

    def __init__(self, file: Path, process: str) -> None:
        self.process = process
        self._queue: queue.SimpleQueue[Event | CallReport | Values | _Stop | threading.Event] = queue.SimpleQueue()
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file.open("ab", buffering=0)
        self._pending = _Pending()
        self._step, self._epoch = 0, 1
        self._error: OSError | None = None
        self._told_points = False
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
        self._thread.start()

    def write(self, item: Event | CallReport | Values) -> None:
        """Queue it. Raises OSError when an earlier item could not be written."""
        if self._error is not None:
            raise self._error
        self._queue.put(item)

    def phase(self, phase: PhaseName, detail: str = "") -> None:
        """The process enters a phase."""
        self.write(Phase(time=time.time(), process=self.process, phase=phase, detail=detail))

    def flush(self, timeout: float = 5.0) -> None:
        """Return once everything written so far is in the file. Raises OSError."""
        done = threading.Event()
        self._queue.put(done)
        done.wait(timeout)
        if self._error is not None:
            raise self._error

    def close(self, timeout: float = 5.0) -> None:
        """Flush and end the thread; may be called twice."""
        if self._thread.is_alive():
            self._queue.put(_Stop())
            self._thread.join(timeout)

    def _run(self) -> None:
        due: float | None = None
        while True:
            try:
                item = self._queue.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
            except queue.Empty:
                item = None
            if isinstance(item, CallReport | Values):
                self._collect(item)
                if due is None:
                    due = time.monotonic() + FLUSH_SECONDS
                if self._told_points and time.monotonic() < due and self._pending.count < MOST_POINTS:
                    continue
                self._told_points |= isinstance(item, CallReport)
            due = None
            self._append(self._points())
            if isinstance(item, threading.Event):
                item.set()
            elif isinstance(item, _Stop):
                self._file.close()
                return
            elif item is not None and not isinstance(item, CallReport | Values):
                self._append(to_line(item))

    def _collect(self, item: CallReport | Values) -> None:
        if isinstance(item, CallReport):
            self._step, self._epoch = item.first + item.count - 1, item.epoch
            self._pending.add_call(item)
            return
        if item.step is not None and item.epoch is not None:
            self._step, self._epoch = item.step, item.epoch
        self._pending.add(item.values, item.replica, self._step, item.time)

    def _points(self) -> bytes:
        series = self._pending.take()
        if not series:
            return b""
        now = time.time()
        return to_line(Points(time=now, process=self.process, step=self._step, epoch=self._epoch, series=series))

    def _append(self, line: bytes) -> None:
        if not line or self._error is not None:
            return
        try:
            # Raw and unbuffered, so a line may need several writes only when the disk fills up.
            written = self._file.write(line)
            if written != len(line):
                raise OSError(28, "no space left to write events", self._file.name)
        except OSError as error:
            self._error = error


class _Pending:
    """Points that wait for the next line, by series."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, int | None], tuple[list[int], list[float], list[float]]] = {}
        self.count = 0

    def add(self, values: dict[str, float], replica: int | None, step: int, moment: float) -> None:
        for name, value in values.items():
            steps, times, points = self._series.setdefault((name, replica), ([], [], []))
            steps.append(step)
            times.append(moment)
            points.append(value)
            self.count += 1

    def add_call(self, call: CallReport) -> None:
        share = (call.end - call.begin) / call.count
        moments = [call.begin + share * index for index in range(1, call.count + 1)]
        trained = {name: values.tolist() for name, values in call.trained.items()}
        for name, values in trained.items():
            steps, times, points = self._series.setdefault((name, None), ([], [], []))
            steps.extend(range(call.first, call.first + call.count))
            times.extend(moments)
            points.extend(values)
        for index, replica in enumerate(call.replicas):
            steps, times, points = self._series.setdefault(("loss", replica), ([], [], []))
            steps.append(call.first + index)
            times.append(moments[index])
            points.append(trained["loss"][index])
        self.count += call.count * len(trained) + len(call.replicas)
        self.add(call.values, None, call.first + call.count - 1, call.end)

    def take(self) -> list[SeriesPoints]:
        taken, self._series, self.count = self._series, {}, 0
        return [
            SeriesPoints(name=name, replica=replica, steps=steps, times=times, values=values)
            for (name, replica), (steps, times, values) in taken.items()
        ]
