"""The self-test of this machine: `python -m workers.training.selftest RESULTS.json --key KEY`.

Every case of workers/contract/selftest.py is trained by real processes, a gang for each strategy, and its weights are
compared with those of one device. RESULTS.json is a SelfTest, whole after every case; a run goes on from it when its
key is the one given. A crash, a hang or an error counts against its case alone, once it came in a process of its own.
Exit codes: 0 complete, 1 it could not go on, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pydantic import ValidationError

from workers.contract.inventory import SelfTest
from workers.contract.layout import ProcessAssignment
from workers.contract.problems import SpecInvalid, shorten
from workers.contract.selftest import Case, cases, is_complete, reference_of, refusal, spec_of
from workers.gang import Gang, NoFreePort, ProcessExit
from workers.training.following import log_tail
from workers.training.here import HOST, place_here
from workers.training.trials import OUTCOMES, TRIAL_LIST, TRIALS, Outcome, Trial

ENGINE = "workers.training.trials"
CASE_SECONDS = 300.0
"""From the begin of a case to its end, the start of its process included. Generous: it may run beside much else."""
LONGEST = 200
"""Of a sentence: it travels with the host's inventory."""
NICE = 19


class SelfTester:
    """Tries what is not in the results yet."""

    def __init__(self, results: Path, key: str, *, engine: str = ENGINE, seconds: float = CASE_SECONDS) -> None:
        self._file, self._folder = results, results.with_suffix(".work")
        self._engine, self._seconds = engine, seconds
        self.results = _read(results, key)
        self._parent = 0

    def follow_parent(self) -> None:
        """From here on be interrupted when the process that started this one ends."""
        self._parent = os.getppid()

    def run(self, wanted: Sequence[Case]) -> None:
        """Raises KeyboardInterrupt, OSError, NoFreePort; the results so far are in the file."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        try:
            for strategy in dict.fromkeys(case.strategy for case in wanted):
                self._try_strategy([case for case in wanted if case.strategy == strategy and not refusal(case)])
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._save()

    def _try_strategy(self, wanted: list[Case]) -> None:
        pending = [case for case in wanted if case.name not in {*self.results.passed, *self.results.failures}]
        if not pending:
            return
        try:
            places = place_here(spec_of(pending[0]))
        except SpecInvalid as error:
            problem = error.problems[0]
            sentence = f"{problem.message}. {problem.remedy}"
            self._update(unavailable={**self.results.unavailable, pending[0].strategy: sentence})
            return
        trials = [self._trial(case) for case in pending]
        self._record(trials)
        for name, failure in self._attempt_all(trials, places):
            self._note(name, failure)

    def _trial(self, case: Case) -> Trial:
        spec = spec_of(case)
        reference = reference_of(spec)
        training, options = reference.training, reference.model.options
        batch = f"{training.global_batch}{'-normalized' if options['batch_norm'] else ''}"
        return Trial(
            name=case.name, spec=spec, reference=str(self._folder / f"{training.aggregation.method}-{batch}.npz")
        )

    def _record(self, trials: list[Trial]) -> None:
        """Train on one device what these are compared with, where that has not been done."""
        wanted = {
            trial.reference: Trial(
                name=Path(trial.reference).stem, spec=reference_of(trial.spec), reference=trial.reference, record=True
            )
            for trial in trials
            if not Path(trial.reference).exists()
        }
        if not wanted:
            return
        references = list(wanted.values())
        for name, failure in self._attempt_all(references, place_here(references[0].spec)):
            if failure:
                raise OSError(f"one device, with which all is compared, fails itself ({name}): {failure}")

    def _attempt_all(self, trials: list[Trial], places: tuple[ProcessAssignment, ...]) -> Iterator[tuple[str, str]]:
        """The name of each trial with its failure or nothing. What fails after others is tried again as the first."""
        left = list(trials)
        while left:
            for first, (name, failure) in enumerate(self._attempt(left, places)):
                if failure and first:
                    break
                left = [trial for trial in left if trial.name != name]
                yield name, failure

    def _attempt(self, trials: list[Trial], places: tuple[ProcessAssignment, ...]) -> Iterator[tuple[str, str]]:
        """One gang, until it is done, or the first failure: the trials' ends in their order, at least one."""
        run = self._folder / "gang"
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir()
        (run / TRIALS).write_bytes(TRIAL_LIST.dump_json(trials))
        gang = Gang(run, trials[0].spec, places, HOST, grace=0, module=self._engine)
        try:
            gang.start()
            yield from self._follow(gang, run, trials)
        finally:
            gang.stop()

    def _follow(self, gang: Gang, run: Path, trials: list[Trial]) -> Iterator[tuple[str, str]]:
        names = _speakers(gang.processes)
        ends: list[ProcessExit] = []
        for trial in trials:
            deadline = time.monotonic() + self._seconds
            failure: str | None = None
            while failure is None:
                self._stay()
                ends += [end for end in gang.poll(timeout=0.1) if not end.succeeded]
                failure = _told(run, names, trial.name)
                if failure is None and ends:
                    how = f"was ended by {ends[0].signal}" if ends[0].signal else f"ended with code {ends[0].code}"
                    last = log_tail(run, ends[0].name).rpartition("\n")[2]
                    failure = f"{ends[0].name} {how}{': ' + last if last else ''}"
                elif failure is None and time.monotonic() > deadline:
                    failure = f"It did not end within {self._seconds:g} s."
            yield trial.name, failure
            if failure:
                return

    def _stay(self) -> None:
        if self._parent and os.getppid() != self._parent:
            raise KeyboardInterrupt

    def _note(self, name: str, failure: str) -> None:
        if failure:
            self._update(failures={**self.results.failures, name: shorten(failure, LONGEST)})
        else:
            self._update(passed=(*self.results.passed, name))
        _say(f"{name}: {failure or 'ok'}")

    def _update(self, **changes: object) -> None:
        self.results = self.results.model_copy(update=changes)
        self._save()

    def _save(self) -> None:
        self.results = self.results.model_copy(update={"complete": is_complete(self.results)})
        partial = self._file.with_suffix(".partial")
        partial.write_text(self.results.model_dump_json(indent=1))
        partial.replace(self._file)


def _read(file: Path, key: str) -> SelfTest:
    """What is there under this key, without what may have changed since: a TPU may have been added."""
    try:
        found = SelfTest.model_validate_json(file.read_bytes())
    except (FileNotFoundError, ValidationError):
        return SelfTest(key=key)
    return found.model_copy(update={"unavailable": {}}) if found.key == key else SelfTest(key=key)


def _speakers(processes: tuple[ProcessAssignment, ...]) -> list[str]:
    """The processes that run the loop: the chief alone where there is a process of that role."""
    chiefs = [process.name for process in processes if process.role == "chief"]
    return chiefs or [process.name for process in processes]


def _told(run: Path, names: list[str], trial: str) -> str | None:
    """What the processes say became of a trial: the first failure, empty when it passed in all of them, else None."""
    ends = []
    for name in names:
        file = run / OUTCOMES / f"{name}.jsonl"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        outcomes = [Outcome.model_validate_json(line) for line in lines if line.endswith("\n")]
        ends += [outcome for outcome in outcomes if outcome.over and outcome.name == trial]
    failure = next((outcome.failure for outcome in ends if outcome.failure), "")
    return failure if failure or len(ends) == len(names) else None


def main(arguments: list[str] | None = None) -> int:
    """The exit code, see the module."""
    parser = argparse.ArgumentParser(prog="python -m workers.training.selftest", description="Try what works here.")
    parser.add_argument("results", type=Path, help="where the results are kept and gone on from")
    parser.add_argument("--key", required=True, help="names what they were found with; others are not kept")
    parser.add_argument("--only", action="append", default=[], metavar="PREFIX", help="only cases that begin so")
    parser.add_argument("--background", action="store_true", help="at the lowest priority, until the caller ends")
    parser.add_argument("--engine", default=ENGINE, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=CASE_SECONDS, help="for one case")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    prefixes = tuple(chosen.only) or ("",)
    try:
        with _alone(chosen.results.with_suffix(".lock")):
            tester = SelfTester(chosen.results.resolve(), chosen.key, engine=chosen.engine, seconds=chosen.seconds)
            if chosen.background:
                os.nice(NICE)
                tester.follow_parent()
            tester.run([case for case in cases() if case.name.startswith(prefixes)])
    except KeyboardInterrupt:
        return 130
    except BlockingIOError:
        _say(f"another self-test writes {chosen.results}: wait for it, or end it")
        return 1
    except (OSError, NoFreePort, SpecInvalid) as error:
        _say(f"the self-test cannot go on: {error}")
        return 1
    return 0


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Raises BlockingIOError while another process is at it."""
    with open(lock, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
