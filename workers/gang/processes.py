"""The gang: all processes of one job on this machine, started together and ended together."""

from __future__ import annotations

import ctypes
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from workers.contract.assignment import Place
from workers.contract.layout import ProcessAssignment
from workers.contract.spec import JobSpec
from workers.gang.downloads import may_download
from workers.gang.environment import environment
from workers.gang.leftovers import kill_leftovers, leftovers
from workers.gang.namespace import PrivateNetwork, available
from workers.gang.ports import PORT_RANGE, PortReservation, plan_ports

ENGINE = "workers.training.process"
Isolate = Literal["auto", "off"]
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None

log = logging.getLogger(__name__)


class ProcessExit(NamedTuple):
    """How a process ended: `code`, or the name of the `signal` that ended it."""

    name: str
    code: int | None
    signal: str | None

    @property
    def succeeded(self) -> bool:
        return self.code == 0


class Gang:
    """The processes of one job that run on `host`.

    `start()` must be called from the main thread: the kernel ends each process when the thread that started it ends,
    so that nothing trains on when we are killed. `stop()` takes at most `grace` + 2 seconds.
    """

    def __init__(
        self,
        run: Path,
        spec: JobSpec,
        processes: tuple[ProcessAssignment, ...],
        host: str,
        grace: float = 3.0,
        *,
        module: str = ENGINE,
        isolate: Isolate = "auto",
        port_range: tuple[int, int] = PORT_RANGE,
        env: Mapping[str, str] | None = None,
        resume: Path | None = None,
    ) -> None:
        """`module` is what each process runs; `env` is what may be inherited from (default: our environment).

        `resume` is the folder of the checkpoint to go on from.
        """
        self.run = run.resolve()
        self.spec = spec
        self.processes = processes
        self.host = host
        self.grace = grace
        self._module = module
        self._isolate = isolate
        self._port_range = port_range
        self._env = os.environ if env is None else env
        self._resume = None if resume is None else str(resume.resolve())
        self._ports = PortReservation()
        self._living: dict[str, subprocess.Popen[bytes]] = {}
        self._watch = _DeathWatch()
        self.pids: dict[str, int] = {}

    @property
    def running(self) -> bool:
        """Whether any process has not been seen to end by `poll()` or `stop()`."""
        return bool(self._living)

    @property
    def isolated(self) -> bool:
        """Whether the processes get a network of their own: several, all of them here, and nothing to download."""
        alone = len(self.processes) > 1 and all(process.host == self.host for process in self.processes)
        return self._isolate == "auto" and alone and available() and not may_download(self.spec, self._env)

    def start(self) -> None:
        """Start every process of this host, or none.

        Raises NoFreePort, or OSError when the system refuses a process.
        """
        for folder in ("places", "events", "logs"):
            (self.run / folder).mkdir(parents=True, exist_ok=True)
        if all(process.host == self.host for process in self.processes):
            local = tuple(process.model_copy(update={"address": "127.0.0.1"}) for process in self.processes)
            self.processes = plan_ports(local, self._ports, self._port_range)
        network = self._private_network()
        try:
            for process in self.processes:
                if process.host == self.host:
                    self._spawn(process, network)
        except BaseException:
            self.stop(grace=0)
            raise
        finally:
            if network is not None:
                network.close()

    def poll(self, timeout: float = 0.0) -> list[ProcessExit]:
        """Processes that have ended since the last call, first death first; waits up to `timeout` seconds for one."""
        if not self._living:
            return []
        exits = []
        for name in self._watch.wait(self._living, timeout):
            code = self._living[name].poll()
            if code is not None:
                del self._living[name]
                self._watch.forget(name)
                exits.append(_exit_of(name, code))
        return exits

    def stop(self, grace: float | None = None) -> list[ProcessExit]:
        """TERM to each process's group, KILL to all that is left after the grace; returns the exits not yet polled."""
        exits = self.poll()
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + (self.grace if grace is None else grace)
        while self._living and time.monotonic() < deadline:
            exits += self.poll(timeout=0.05)
        # Children of a process that went politely have the rest of the grace, then go as well.
        while leftovers(self.run) and time.monotonic() < deadline:
            time.sleep(0.02)
        self._signal(signal.SIGKILL)
        kill_leftovers(self.run, seconds=1.0)
        deadline = time.monotonic() + 1.0
        while self._living and time.monotonic() < deadline:
            exits += self.poll(timeout=0.05)
        self._ports.close()
        self._watch.close()
        return exits

    def _private_network(self) -> PrivateNetwork | None:
        if not self.isolated:
            return None
        try:
            return PrivateNetwork()
        except OSError as error:
            log.warning("%s runs on the host's own network: %s", self.run, error)
            return None

    def _signal(self, number: signal.Signals) -> None:
        for process in self._living.values():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)

    def _spawn(self, process: ProcessAssignment, network: PrivateNetwork | None) -> None:
        place = self.run / "places" / f"{process.name}.json"
        content = Place(
            spec=self.spec, process=process, processes=self.processes, run=str(self.run), resume=self._resume
        )
        partial = place.with_suffix(".partial")
        partial.write_text(content.model_dump_json())
        partial.replace(place)
        logs = self.run / "logs"
        with open(logs / f"{process.name}.stdout", "ab") as out, open(logs / f"{process.name}.stderr", "ab") as err:
            child = subprocess.Popen(
                [sys.executable, "-m", self._module, str(place)],
                cwd=self.run,
                env=environment(process, self.processes, self.run, self._env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=_before_exec(network),  # noqa: PLW1509  no other thread exists yet
            )
        self._living[process.name] = child
        self._watch.add(process.name, child.pid)
        self.pids[process.name] = child.pid


class _DeathWatch:
    """Tells who died first. The kernel queues the ends of processes in their order where it has pidfds (Linux 5.3)."""

    def __init__(self) -> None:
        self._epoll = select.epoll() if hasattr(select, "epoll") and hasattr(os, "pidfd_open") else None
        self._fds: dict[str, int] = {}

    def add(self, name: str, pid: int) -> None:
        if self._epoll is None:
            return
        try:
            self._fds[name] = os.pidfd_open(pid)
            self._epoll.register(self._fds[name], select.EPOLLIN)
        except OSError:
            self.close()

    def wait(self, names: Mapping[str, object], timeout: float) -> list[str]:
        """Names of processes that may have ended, first death first."""
        if self._epoll is None:
            time.sleep(min(timeout, 0.02))
            return list(names)
        by_fd = {fd: name for name, fd in self._fds.items()}
        return [by_fd[fd] for fd, _ in self._epoll.poll(timeout, max(len(by_fd), 1)) if fd in by_fd]

    def forget(self, name: str) -> None:
        fd = self._fds.pop(name, None)
        if fd is not None and self._epoll is not None:
            self._epoll.unregister(fd)
            os.close(fd)

    def close(self) -> None:
        """From here on nothing is watched and `wait` names everybody."""
        for name in list(self._fds):
            self.forget(name)
        if self._epoll is not None:
            self._epoll.close()
            self._epoll = None


def _before_exec(network: PrivateNetwork | None) -> Callable[[], None]:
    parent = os.getpid()

    def prepare() -> None:
        if network is not None:
            network.enter()
        # After entering: a change of credentials would clear it.
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    return prepare


def _exit_of(name: str, code: int) -> ProcessExit:
    if code >= 0:
        return ProcessExit(name, code, None)
    try:
        return ProcessExit(name, None, signal.Signals(-code).name)
    except ValueError:
        return ProcessExit(name, None, f"signal {-code}")
