"""Follows the deaths in a gang to its end: when the rest must go, and what is written of it."""

from __future__ import annotations

import time
from pathlib import Path

from workers.contract.assignment import Assignment
from workers.gang import Gang, ProcessExit
from workers.host.journal import Journal, last_failure, tail_bytes, was_at_work
from workers.host.runs import RunFolder
from workers.host.verdict import SYMPTOMS, Verdict, Witness, judge

SETTLE_SECONDS = 0.5
"""Time for the cause to show after a death that another process must have caused."""
FAREWELL_SECONDS = 60.0
"""Time for the other processes to end once the chief did all that was asked for."""
STDERR_BYTES = 64 * 1024


def done(run: Path) -> Verdict:
    """All did what they were asked for: the whole job, or a pause."""
    return Verdict("paused" if RunFolder(run).paused_file.exists() else "succeeded")


class GangEnd:
    """Told of every exit, in order."""

    def __init__(self, gang: Gang, assignment: Assignment, journal: Journal) -> None:
        self._gang = gang
        self._assignment = assignment
        self._journal = journal
        self._exits: list[ProcessExit] = []
        self._times: dict[str, float] = {}
        self._after_stop: set[str] = set()
        self._outlived: set[str] = set()
        self._spare = {process.name for process in assignment.processes if not process.essential}
        self._deadline: float | None = None

    def hear(self, exits: list[ProcessExit]) -> None:
        """Take over and write down what the gang told."""
        for end in exits:
            self._exits.append(end)
            self._times[end.name] = time.time()
            self._journal.exited(end)
            if not end.succeeded and self._goes_on_without(end):
                self._outlived.add(end.name)
            elif not end.succeeded:
                self._by(SETTLE_SECONDS if self._is_symptom(end) else 0.0)
            elif end.name == self._chief:
                self._by(FAREWELL_SECONDS)

    @property
    def over(self) -> bool:
        """Whether those that still run must be ended now."""
        return self._deadline is not None and time.monotonic() >= self._deadline

    def verdict(self) -> Verdict:
        """End the rest and say why it came so."""
        self._end_rest()
        bad = self._bad()
        chief_did_all = any(end.name == self._chief and end.succeeded for end in self._exits)
        if not bad or (chief_did_all and all(end.name in self._after_stop for end in bad)):
            return done(self._gang.run)
        return judge([self._witness(end) for end in bad])

    def broken_off(self, verdict: Verdict, grace: float | None = None) -> Verdict:
        """End the gang for a reason from outside. Whoever had done all by then has succeeded all the same."""
        was_running = self._gang.running
        self._end_rest(grace)
        if not was_running and self._exits and not self._bad():
            return done(self._gang.run)
        return verdict

    @property
    def _chief(self) -> str:
        processes = self._assignment.processes
        return next((p for p in processes if p.role == "chief"), processes[0]).name

    def _bad(self) -> list[ProcessExit]:
        """Ends that the job could not outlive."""
        return [end for end in self._exits if not end.succeeded and end.name not in self._outlived]

    def _goes_on_without(self, end: ProcessExit) -> bool:
        # Before that the others still wait for it.
        return end.name in self._spare and was_at_work(self._gang.run, end.name)

    def _end_rest(self, grace: float | None = None) -> None:
        self.hear(self._gang.poll())
        late = self._gang.stop(grace)
        self._after_stop = {end.name for end in late}
        self.hear(late)

    def _by(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def _is_symptom(self, end: ProcessExit) -> bool:
        failed = last_failure(self._gang.run, end.name)
        return failed is not None and failed.reason in SYMPTOMS

    def _witness(self, end: ProcessExit) -> Witness:
        run = self._gang.run
        return Witness(
            exit=end,
            order=self._exits.index(end),
            ours=end.name in self._after_stop,
            failed=last_failure(run, end.name),
            stderr=tail_bytes(run / "logs" / f"{end.name}.stderr", STDERR_BYTES).decode(errors="replace"),
            time=self._times[end.name],
        )
