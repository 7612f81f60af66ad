"""Starts the processes of a one-machine Lockstep, keeps them up, and ends them in order."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

PR_SET_PDEATHSIG = 1
RESTART_SECONDS = 1.0
_libc = ctypes.CDLL(None) if os.uname().sysname == "Linux" else None


@dataclasses.dataclass
class Member:
    """One process of the household, its output kept in `log`."""

    name: str
    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Household:
    """Members start in the order in which they are added and end in the opposite one.

    A member that dies is started again, at most once a second; `say` is told. Members inherit the file descriptors
    `inherited`.
    """

    def __init__(
        self, folder: Path, env: Mapping[str, str], say: Callable[[str], None], inherited: tuple[int, ...] = ()
    ) -> None:
        self._logs = folder / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._env = dict(env)
        self._say = say
        self._inherited = inherited
        self._members: list[Member] = []
        self._told: dict[str, str] = {}

    def add(self, name: str, *command: str) -> Member:
        """Start `command` as the member `name`."""
        member = Member(name, list(command), self._logs / f"{name}.log")
        self._members.append(member)
        self._start(member)
        return member

    def tend(self) -> None:
        """Start again what has died."""
        for member in self._members:
            if not member.running and time.monotonic() - member.started > RESTART_SECONDS:
                self._tell_end(member)
                self._start(member)

    def end(self, *, grace: float = 5.0) -> None:
        """TERM each, last one first, and KILL what does not go within `grace` seconds."""
        for member in reversed(self._members):
            if member.process is None or not member.running:
                continue
            member.process.terminate()
            try:
                member.process.wait(grace)
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()

    def _tell_end(self, member: Member) -> None:
        """With its last words; one that dies of the same every second says so once."""
        code = member.process.returncode if member.process else None
        words = _last_line(member.log)
        told = f"{member.name} ended ({code}), starting it again; its log: {member.log}{words and ': ' + words}"
        if told != self._told.get(member.name):
            self._told[member.name] = told
            self._say(told)

    def _start(self, member: Member) -> None:
        with member.log.open("ab") as log:
            member.process = subprocess.Popen(
                member.command,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=self._inherited,
                # A Ctrl-C in the terminal is ours alone; if we are killed, nobody is left behind.
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  this process has one thread
            )
        member.started = time.monotonic()


def _last_line(log: Path, most: int = 300) -> str:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        lines = file.read().decode(errors="replace").splitlines()
    return lines[-1][:most] if lines else ""


def _end_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
