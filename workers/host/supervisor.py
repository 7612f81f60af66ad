"""Runs one attempt on this host: `python -m workers.host.supervisor RUN`.

It lives in a session of its own, so that neither the Celery worker nor the host daemon takes it along. It starts the
gang, ends it at the first death, at a stop or when the control plane has given the attempt up, writes why, and stays
until every byte is acknowledged. Started on a run whose supervisor died, it writes that end and ships the rest.
"""

from __future__ import annotations

import argparse
import logging
import math
import shutil
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from pydantic import ValidationError

from workers.contract.assignment import Assignment
from workers.contract.events import Ended, Exited, Spawned
from workers.contract.library import localized, references
from workers.contract.problems import SpecInvalid
from workers.contract.wire import COMMITTED_TTL
from workers.gang import Gang, NoFreePort, ProcessExit, kill_leftovers
from workers.host.awaiting import fetch
from workers.host.gang_end import GangEnd, done
from workers.host.journal import Journal
from workers.host.runs import RunFolder
from workers.host.settings import HostSettings
from workers.host.shipping import Shipping
from workers.host.storing import Storing
from workers.host.verdict import Verdict, all_succeeded, cut, devices_shown

POLL_SECONDS = 0.05
SHUTDOWN_GRACE = 1.0
SHUTDOWN_SHIP_SECONDS = 1.0

log = logging.getLogger(__name__)


class Supervisor:
    """One attempt on one host, from the lock to the last acknowledged byte."""

    def __init__(self, run: RunFolder, settings: HostSettings) -> None:
        self.run = run
        self.settings = settings
        self.journal = Journal(run.path, settings.lockstep_host)
        self.shipping = Shipping(run, settings.lockstep_host, settings.redis_url)
        self.storing = Storing(run, settings.lockstep_store, self.journal, settings.lockstep_store_patience)
        self.shut_down = False

    def supervise(self) -> None:
        """Whatever this run still needs."""
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if not any(isinstance(event, Ended) for event in self.journal.read()):
            verdict = self._adopt() if self.run.begun_file.exists() else self._run_gang()
            if self.run.begun_file.exists():
                self._keep_files()
            self.journal.ended(verdict)
        self.shipping.start()
        self.shipping.finish()
        self._wait_until_shipped()

    def store_late(self) -> None:
        """Try once more to put into the store what it could not take when the run ended, and ship the news."""
        signal.signal(signal.SIGTERM, self._on_term)
        self.storing = Storing(self.run, self.settings.lockstep_store, self.journal, patience=0)
        self._keep_files()
        self.shipping.finish()
        self._wait_until_shipped()

    def _run_gang(self) -> Verdict:
        try:
            assignment = self._assignment()
        except ValueError as error:
            return Verdict("failed", cut(str(error), 900))
        if self.run.stop_file.exists():
            return Verdict("cancelled", "Stopped before it started.")
        if assignment.resume is not None or references(assignment.spec):
            failure = fetch(self.run, self._attend)
            if failure is not None:
                return failure
        gang = Gang(
            self.run.path,
            localized(assignment.spec, self.settings.library),
            assignment.processes,
            self.settings.lockstep_host,
            self.settings.lockstep_grace,
            module=self.settings.lockstep_engine,
            isolate=self.settings.lockstep_isolate,
            port_range=self.settings.port_range,
            resume=None if assignment.resume is None else self.run.resume,
        )
        try:
            self.journal.reserve()
            self.run.begun_file.touch()
            gang.start()
        except (OSError, NoFreePort, SpecInvalid) as error:
            return Verdict("failed", cut(f"{self.settings.lockstep_host} could not start the processes: {error}", 900))
        try:
            return self._watch(gang, assignment)
        finally:
            gang.stop(grace=0)

    def _assignment(self) -> Assignment:
        """Raises ValueError with one sentence."""
        host = self.settings.lockstep_host
        try:
            assignment = self.run.assignment()
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise ValueError(
                f"{host} cannot read its assignment ({where}: {first['msg']}): is it of another version of Lockstep?"
            ) from None
        if not assignment.on_host(host):
            raise ValueError(f"{host} was given an assignment without a process for it: check LOCKSTEP_HOST there")
        return assignment

    def _watch(self, gang: Gang, assignment: Assignment) -> Verdict:
        for process in assignment.on_host(self.settings.lockstep_host):
            self.journal.spawned(
                target=process.name,
                host=process.host,
                pid=gang.pids[process.name],
                devices=devices_shown(process.kind, process.devices),
            )
        # Only now: a thread in this process while it forks could leave a child with a locked lock.
        self.shipping.start()
        self.storing.start(assignment.job)
        end = GangEnd(gang, assignment, self.journal)
        while gang.running:
            end.hear(gang.poll(timeout=POLL_SECONDS))
            reason = self._reason_to_stop()
            if reason is not None:
                return end.broken_off(reason, self._grace)
            if end.over:
                break
            self.shipping.tend()
        return end.verdict()

    def _attend(self) -> Verdict | None:
        """While the checkpoint comes: tell that we live, and hear whether it is still wanted."""
        self.shipping.attend()
        return self._reason_to_stop()

    def _keep_files(self) -> None:
        """Wait until the store has all that is to be kept. While it cannot take it that has an end, told in words."""
        self.shipping.start()
        try:
            self.storing.start(self.run.assignment().job)
        except ValidationError:
            return
        self.storing.finish()
        while not (self.storing.over or self.shut_down or (self.shipping.voided and not self.run.settled)):
            self.shipping.tend()
            time.sleep(POLL_SECONDS)
        self.storing.conclude(f"the host {self.settings.lockstep_host} was shut down" if self.shut_down else "")
        shutil.rmtree(self.run.resume, ignore_errors=True)

    @property
    def _grace(self) -> float:
        """Whoever shuts a host down does not wait for long."""
        return min(self.settings.lockstep_grace, SHUTDOWN_GRACE if self.shut_down else math.inf)

    def _reason_to_stop(self) -> Verdict | None:
        if self.run.stop_file.exists():
            return Verdict("cancelled", "Stopped by request.")
        if self.shipping.voided:
            return Verdict("failed", f"The control plane had given this attempt on {self.settings.lockstep_host} up.")
        if self.shut_down:
            return Verdict("failed", f"The training host {self.settings.lockstep_host} was shut down.")
        return None

    def _adopt(self) -> Verdict:
        """The end of a run whose supervisor died; the kernel ended its processes, their children we end."""
        log.warning("attempt %s: its supervisor died, writing its end", self.run.attempt)
        kill_leftovers(self.run.path)
        events = self.journal.read()
        spawned = [event.target for event in events if isinstance(event, Spawned)]
        exits = {e.target: ProcessExit(e.target, e.code, e.signal) for e in events if isinstance(e, Exited)}
        for name in spawned:
            if name not in exits:
                self.journal.exited(ProcessExit(name, None, "SIGKILL"))
        needed = [name for name in spawned if name not in self._spare()]
        if needed and all_succeeded(exits, needed):
            return done(self.run.path)
        if self.run.stop_file.exists():
            return Verdict("cancelled", "Stopped by request.")
        return Verdict(
            "failed", f"The supervisor on {self.settings.lockstep_host} died, and its processes were ended with it."
        )

    def _spare(self) -> set[str]:
        """Processes without which the job goes on."""
        try:
            return {process.name for process in self.run.assignment().processes if not process.essential}
        except ValidationError:
            return set()

    def _wait_until_shipped(self) -> None:
        began = time.monotonic()
        limit = COMMITTED_TTL
        while not self.shipping.complete and time.monotonic() - began < limit:
            if self.shut_down:
                limit = min(limit, int(time.monotonic() - began + SHUTDOWN_SHIP_SECONDS))
            self.shipping.tend()
            time.sleep(POLL_SECONDS)
        if self.shipping.complete and not self.run.settled:
            self.run.settled_file.touch()
        self.shipping.abandon()

    def _on_term(self, _number: int, _frame: FrameType | None) -> None:
        self.shut_down = True


def main() -> int:
    """0 when the run needs no supervisor any more, 2 when the folder holds no run."""
    parser = argparse.ArgumentParser(prog="python -m workers.host.supervisor", description=__doc__)
    parser.add_argument("run", type=Path, help="the attempt's run folder, <LOCKSTEP_RUNS>/<attempt>")
    run = RunFolder(parser.parse_args().run.resolve())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if not run.path.name.isdigit() or not run.launched:
        log.error("%s holds no assignment.json of an attempt: give the run folder of a launched one", run.path)
        return 2
    with run.lock() as ours:
        if ours and not run.over:
            settings = HostSettings()
            settings.export()
            supervisor = Supervisor(run, settings)
            if run.settled:
                supervisor.store_late()
            else:
                supervisor.supervise()
    return 0


if __name__ == "__main__":
    sys.exit(main())
