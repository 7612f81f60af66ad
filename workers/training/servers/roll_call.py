"""Asks every other process of a job whether it still listens, since TensorFlow waits an hour for one that is gone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence

from workers.contract.assignment import Place
from workers.contract.layout import ProcessAssignment

PERIOD_SECONDS = 0.5
ANSWER_SECONDS = 2.0
UNANSWERED = 3
"""A host that does not answer may only be busy; one that refuses has no such process any more."""
START_SECONDS = 600.0
HANG_SECONDS = 60.0


class PeerLost(Exception):
    """The job cannot go on without the processes that are gone; the message is one sentence that names them."""


class RollCall:
    """A thread that knows which of the job's other processes are gone. Who is gone stays gone."""

    def __init__(self, place: Place) -> None:
        self._others = [process for process in place.processes if process.name != place.process.name]
        self._silent = dict.fromkeys((process.name for process in self._others), 0)
        self._told: set[str] = set()
        self._rounds = 0
        self.gone: set[str] = set()

    def wait_for_all(self) -> None:
        """Return when every other process listens. Raises PeerLost when one does not within START_SECONDS."""
        deadline = time.monotonic() + START_SECONDS
        for process in self._others:
            while _knock(process) is not True:
                if time.monotonic() > deadline:
                    where = f"{process.address}:{process.port}"
                    raise PeerLost(f"{process.name} did not listen on {where} within {START_SECONDS:.0f} s.")
                time.sleep(0.1)

    def start(self) -> None:
        """Ask from now on."""
        threading.Thread(target=self._run, name="roll call", daemon=True).start()

    def check(self) -> None:
        """Raises PeerLost when an essential process is gone, or all the others."""
        essential = sorted(process.name for process in self._others if process.essential and process.name in self.gone)
        if essential:
            them = "it" if len(essential) == 1 else "them"
            raise PeerLost(f"{' and '.join(essential)} ended, and the job cannot go on without {them}.")
        workers = [process.name for process in self._others if not process.essential]
        if workers and self.gone.issuperset(workers):
            raise PeerLost(f"All workers ended ({', '.join(workers)}), so there is nobody left to train.")

    def blame(self) -> None:
        """Wait until everybody has been asked once more; raises PeerLost as `check` does."""
        deadline = time.monotonic() + PERIOD_SECONDS + UNANSWERED * ANSWER_SECONDS
        rounds = self._rounds
        while self._rounds < rounds + 2 and time.monotonic() < deadline:
            self.check()
            time.sleep(0.05)
        self.check()

    def news(self) -> str:
        """A sentence on processes that are gone since the last call, or nothing."""
        fresh = sorted(self.gone - self._told)
        if not fresh:
            return ""
        self._told.update(fresh)
        workers = [process.name for process in self._others if not process.essential]
        left = len(set(workers) - self.gone)
        return f"{' and '.join(fresh)} ended; training goes on with {left} of {len(workers)} workers"

    def _run(self) -> None:
        while len(self.gone) < len(self._others):
            for process in self._others:
                if process.name not in self.gone:
                    self._ask(process)
            self._rounds += 1
            time.sleep(PERIOD_SECONDS)

    def _ask(self, process: ProcessAssignment) -> None:
        answer = _knock(process)
        self._silent[process.name] = self._silent[process.name] + 1 if answer is None else 0
        if answer is False or self._silent[process.name] >= UNANSWERED:
            self.gone.add(process.name)


class Answers:
    """When each worker brought back something, so that one that hangs but still listens is found out.

    Nothing tells a worker that is stuck from one that is slow: it gets HANG_SECONDS and four times the longest that
    any answer has taken so far, and START_SECONDS for its first one, since it compiles for that.
    """

    def __init__(self, workers: Sequence[str], what: str = "its steps") -> None:
        self._what = what
        self._latest = dict.fromkeys(workers, 0.0)
        self._longest = 0.0
        self._newest = time.monotonic()

    def ask(self) -> None:
        """Work is given out to workers that had none."""
        self._newest = time.monotonic()

    def note(self, worker: str) -> None:
        """An answer of that worker has come."""
        now = time.monotonic()
        self._longest = max(self._longest, now - self._newest if all(self._latest.values()) else 0.0)
        self._newest = self._latest[worker] = now

    def check(self, gone: set[str]) -> None:
        """Raises PeerLost when for too long nobody has answered, and names who has been silent longest."""
        left = {worker: latest for worker, latest in self._latest.items() if worker not in gone}
        if not left:
            return
        worker = min(left, key=lambda name: left[name])
        patience = HANG_SECONDS + 4 * self._longest if left[worker] else START_SECONDS
        silent = time.monotonic() - self._newest
        if silent > patience:
            raise PeerLost(
                f"{worker} listens but has not brought back {self._what} for {silent:.0f} s, so the job cannot go on: "
                "it is stopped, stuck or cut off from the parameter servers."
            )


def _knock(process: ProcessAssignment) -> bool | None:
    """Whether somebody listens there; None when nothing answers at all."""
    try:
        socket.create_connection((process.address, process.port), timeout=ANSWER_SECONDS).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return None
    return True
