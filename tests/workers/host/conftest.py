"""A training host's run folders and supervisors as real processes, ended after each test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import RedisServer
from tests.workers.host.patience import wait_for
from tests.workers.host.samples import STANDIN, assignments, spec_with
from workers.contract.assignment import Assignment
from workers.contract.store import Store
from workers.gang import kill_leftovers, leftovers
from workers.host.runs import RunFolder

ROOT = Path(__file__).resolve().parent.parent.parent.parent


class Host:
    """One host named `here`: its settings as the environment gives them, its run folders, its supervisors."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.runs = folder / "runs"
        self.store = Store(str(folder / "store"))
        self.env = {
            **os.environ,
            "REDIS_URL": redis_url,
            "LOCKSTEP_HOST": "here",
            "LOCKSTEP_RUNS": str(self.runs),
            "LOCKSTEP_STORE": str(folder / "store"),
            "LOCKSTEP_GRACE": "0.5",
            "LOCKSTEP_ENGINE": STANDIN,
        }
        self.output = folder / "output"
        self.processes: list[subprocess.Popen[bytes]] = []

    def run_folder(self, attempt: int = 1) -> RunFolder:
        return RunFolder(self.runs / str(attempt))

    def prepare(self, *tags: str, attempt: int = 1, workers: int = 2) -> RunFolder:
        """A run folder as launch() leaves it."""
        run = self.run_folder(attempt)
        run.accept(assignment(*tags, attempt=attempt, workers=workers).model_dump(mode="json"))
        return run

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments], cwd=ROOT, env=self.env, start_new_session=True, stderr=output
            )
        self.processes.append(process)
        return process

    def supervise(self, *tags: str, attempt: int = 1, workers: int = 2) -> RunFolder:
        """A run folder and its supervisor at work."""
        run = self.prepare(*tags, attempt=attempt, workers=workers)
        self.start("workers.host.supervisor", str(run.path))
        return run

    def end(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        folders = [RunFolder(path) for path in self.runs.glob("[0-9]*")]
        for run in folders:
            pid = run.supervisor_pid
            if pid:
                os.kill(pid, signal.SIGKILL)
                wait_for(lambda run=run: not run.alive, what="the supervisor to end")
            kill_leftovers(run.path)
            assert leftovers(run.path) == []


def assignment(*tags: str, attempt: int = 1, workers: int = 2) -> Assignment:
    return Assignment(job=7, attempt=attempt, spec=spec_with(*tags), processes=assignments(workers))


@pytest.fixture
def host(redis_server: RedisServer) -> Iterator[Host]:
    folder = Path(tempfile.mkdtemp(prefix="ls-host-"))
    made = Host(folder, redis_server.url)
    yield made
    made.end()
    shutil.rmtree(folder)
