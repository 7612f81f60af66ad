"""Runs one program in the throw-away process, and hands over what it answers: for a while, and no longer."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from workers.contract.library import Confinement
from workers.gang.leftovers import MARK, kill_leftovers
from workers.sandbox.confinement import BESIDE_US, LIMITS, ROOT, Limits, command, confinement, environment

TEMPORARY_BYTES = 2**28
"""Of what a process beside us may write; others have a file system of their own, of this size."""
ANSWER_FD = "LOCKSTEP_ANSWER_FD"
LOOK_SECONDS = 0.05


class Outcome(NamedTuple):
    """`answer` is what the program wrote to its answer pipe, `output` what it printed, both cut to their limits.

    `fault` says in words why it did not end well, empty when it did.
    """

    answer: bytes
    output: str
    fault: str
    confinement: Confinement
    seconds: float


def run(
    arguments: list[str],
    *,
    files: tuple[Path, ...] = (),
    limits: Limits = LIMITS,
    kind: Confinement | None = None,
) -> Outcome:
    """Run `python arguments...`, which may read `files`, and leave nothing of it behind."""
    kind = kind or confinement()
    folder = Path(tempfile.mkdtemp(prefix="lockstep-throwaway-"))
    try:
        return _run(kind, [sys.executable, *arguments], files, limits, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(kind: Confinement, inner: list[str], files: tuple[Path, ...], limits: Limits, folder: Path) -> Outcome:
    began = time.monotonic()
    reading, writing = os.pipe()
    try:
        process = _start(kind, command(kind, inner, files, limits), folder, writing)
    finally:
        os.close(writing)
    assert process.stdout is not None

    def excess() -> str:
        if kind in BESIDE_US and _kept(process.pid, folder) > TEMPORARY_BYTES:
            return f"was ended: it wrote more than {TEMPORARY_BYTES // 2**20} MiB to the disk"
        return f"was ended: it started over {limits.processes} threads" * (_threads(process.pid) > limits.processes)

    printed, answer = _Pipe(process.stdout.fileno(), limits.output_bytes), _Pipe(reading, limits.answer_bytes)
    try:
        ended = _drain([printed, answer], began + limits.wall_seconds, lambda: process.poll() is not None, excess)
        exceeded = excess()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kill_leftovers(folder)
        process.stdout.close()
        os.close(reading)
    output = printed.content.decode(errors="replace") + ("\n[cut]" if printed.cut else "")
    fault = _fault(process.returncode, limits) if ended else f"was ended after {limits.wall_seconds:.0f} s of time"
    fault = exceeded or fault
    if answer.cut:
        fault = f"answered with more than {limits.answer_bytes // 1024:,} KiB"
    return Outcome(bytes(answer.content), output, fault, kind, time.monotonic() - began)


def _start(kind: Confinement, arguments: list[str], folder: Path, answer: int) -> subprocess.Popen[bytes]:
    further = {ANSWER_FD: str(answer), MARK: str(folder)}
    if kind in BESIDE_US:
        # /tmp is everybody's: the process gets a folder of its own there. Of ours it is shown the package, and not
        # the folder around it, which Python would look through.
        (folder / "workers").symlink_to(ROOT / "workers")
        further |= {name: str(folder) for name in ("HOME", "TMPDIR", "KERAS_HOME", "PYTHONPATH")}
    return subprocess.Popen(
        arguments,
        env=environment(further),
        cwd=folder if kind in BESIDE_US else "/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(answer,),
        start_new_session=True,
    )


class _Pipe:
    """The first bytes of what comes through; the rest is read and dropped, so that nobody waits for us."""

    def __init__(self, fd: int, limit: int) -> None:
        self.fd, self.limit = fd, limit
        self.content = bytearray()
        self.cut = False

    def take(self) -> bool:
        """False at its end."""
        data = os.read(self.fd, 65536)
        room = self.limit - len(self.content)
        self.content += data[:room]
        self.cut = self.cut or len(data) > room
        return bool(data)


def _drain(pipes: list[_Pipe], deadline: float, over: Callable[[], bool], stop: Callable[[], str]) -> bool:
    """Until the process has ended and its pipes are empty, or `stop` says so; False when the time ran out first.

    A grandchild may hold a pipe open for ever: what it would say later nobody waits for.
    """
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe.fd, selectors.EVENT_READ, pipe)
        looked = 0.0
        while time.monotonic() < deadline:
            ready = selector.select(LOOK_SECONDS)
            for key, _ in ready:
                if not key.data.take():
                    selector.unregister(key.fd)
            if over() and not ready:
                return True
            if time.monotonic() - looked > LOOK_SECONDS:
                if stop():
                    return True
                looked = time.monotonic()
    return over()


def _threads(pid: int) -> int:
    """Of the process and all below it; the kernel lets root start any number, whatever the limit says."""
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        with suppress(OSError):
            total += len(os.listdir(f"/proc/{one}/task"))
            waiting += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return total


def _kept(pid: int, folder: Path) -> int:
    """Bytes on the disk below the folder, and in files that the process has removed and still holds open."""
    total = 0
    for place in _files(pid, folder):
        with suppress(OSError):
            found = os.stat(place, follow_symlinks=place.startswith("/proc/"))
            if not found.st_nlink or not place.startswith("/proc/"):
                total += max(found.st_blocks * 512, 4096)
        if total > TEMPORARY_BYTES:
            break
    return total


def _files(pid: int, folder: Path) -> Iterator[str]:
    with suppress(OSError):
        yield from (f"/proc/{pid}/fd/{number}" for number in os.listdir(f"/proc/{pid}/fd"))
    for top, _, names in os.walk(folder):
        yield from (f"{top}/{name}" for name in names)


def _fault(code: int, limits: Limits) -> str:
    if code == 0:
        return ""
    number = -code if code < 0 else code - 128
    with suppress(ValueError):
        name = signal.Signals(number).name
        if name in {"SIGXCPU", "SIGKILL"}:
            return f"was ended ({name}): it used more than {limits.cpu_seconds} s of processor time, or all memory"
        return f"was ended by {name}"
    return f"ended with code {code}"
