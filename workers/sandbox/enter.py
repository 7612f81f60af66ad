"""Shuts itself in, then becomes the given command: `python -m workers.sandbox.enter PLAN -- COMMAND...`

PLAN is a JSON text of a `Plan`. With `namespaces` the command sees its own processes, a network without any device, and
a file system of the `visible` paths, read-only, and an empty /tmp; it holds no capability and can gain none. Where
bubblewrap has done all that, only limits and rules are set. Standard library alone: nothing is trusted so far.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import platform
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from workers.sandbox import rules

CLONE_ALL = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
"""Mounts, names, IPC, users, processes, network."""
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
"""Number of the system call, for which the C library has no function."""
DEVICES = ("null", "zero", "full", "random", "urandom")
TEMPORARY_BYTES = 256 * 2**20
NOT_ALLOWED = 125
"""Exit code when the kernel lets us make no namespaces."""

_libc = ctypes.CDLL(None, use_errno=True)


@dataclasses.dataclass(frozen=True)
class Plan:
    """`memory_bytes` of address space, `cpu_seconds`, `file_bytes` of one file; `processes` 0 means no limit."""

    namespaces: bool
    landlock: bool
    visible: list[str]
    memory_bytes: int
    cpu_seconds: int
    file_bytes: int
    processes: int


def main(arguments: list[str]) -> NoReturn:
    """Never returns: the exit code is the command's, or 128 plus the number of the signal that ended it."""
    plan, command = Plan(**json.loads(arguments[0])), arguments[2:]
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
    if plan.namespaces:
        try:
            _unshare()
        except OSError as error:
            print(f"no namespaces: {error}", file=sys.stderr)  # noqa: T201
            sys.exit(NOT_ALLOWED)
        _leave_to_child()
        # Process 1 of the new namespace: when it ends, the kernel ends all others.
        _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
        try:
            _change_root(plan.visible)
        except OSError as error:
            print(f"no file system of its own: {error}", file=sys.stderr)  # noqa: T201
            sys.exit(NOT_ALLOWED)
        _leave_to_child()
        os.chdir("/tmp")
    _give_up_rights()
    _limit(plan)
    _keep_to_rules(plan)
    os.execv(command[0], command)


def _unshare() -> None:
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", CLONE_ALL)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _leave_to_child() -> None:
    """Go on as a child; the parent waits for its end and tells it."""
    child = os.fork()
    if child == 0:
        return
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _change_root(visible: list[str]) -> None:
    number = PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"not known how on {platform.machine()}")
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    root = Path("/tmp")  # of the old file system; covered by the new one, nothing there is touched
    _mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    old = root / ".old"
    old.mkdir()
    _call("syscall", number, bytes(root), bytes(old))
    os.chdir("/")
    _devices()
    # Before what is shown, which may lie in /tmp itself.
    for name, options in (("tmp", f"size={TEMPORARY_BYTES},mode=1777"), ("dev/shm", f"size={TEMPORARY_BYTES}")):
        Path("/", name).mkdir(parents=True, exist_ok=True)
        _mount("tmpfs", Path("/", name), "tmpfs", MS_NOSUID | MS_NODEV, options)
    for name in visible:
        _show(name)
    Path("/proc").mkdir(exist_ok=True)
    with suppress(OSError):  # where a container hides parts of /proc, the kernel allows no new one
        _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    _call("umount2", b"/.old", MNT_DETACH)
    Path("/.old").rmdir()
    _mount(None, "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def _show(name: str) -> None:
    """The path of the old file system at the same place, read-only."""
    source, target = Path("/.old", name.lstrip("/")), Path(name)
    if source.is_symlink():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(os.readlink(source))
        return
    if not source.exists():
        return
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount(source, target, None, MS_BIND | MS_REC)
    # Flags that the mount had before may not be taken from it.
    kept = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
    _mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | kept)


def _devices() -> None:
    Path("/dev").mkdir()
    for name in DEVICES:
        Path("/dev", name).touch()
        _mount(Path("/.old/dev", name), Path("/dev", name), None, MS_BIND)


def _give_up_rights() -> None:
    """What the kernel would give back at exec to root is given up; others hold nothing after it."""
    for capability in range(64):
        with suppress(OSError):  # numbers that this kernel does not know
            _call("prctl", PR_CAPBSET_DROP, capability)
    _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _keep_to_rules(plan: Plan) -> None:
    """Landlock, which reads the current folder as our own, where nothing else keeps files away; seccomp everywhere."""
    try:
        if plan.landlock:
            rules.hold_to_files(plan.visible, os.getcwd())
        rules.hold_to_calls()
    except OSError as error:
        if plan.landlock:
            print(f"no rules: {error}", file=sys.stderr)  # noqa: T201
            sys.exit(NOT_ALLOWED)


def _limit(plan: Plan) -> None:
    limits = {
        resource.RLIMIT_AS: plan.memory_bytes,
        resource.RLIMIT_CPU: plan.cpu_seconds,
        resource.RLIMIT_FSIZE: plan.file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 256,
    }
    if plan.processes:
        limits[resource.RLIMIT_NPROC] = plan.processes
    for which, value in limits.items():
        _, highest = resource.getrlimit(which)
        allowed = value if highest == resource.RLIM_INFINITY else min(value, highest)
        resource.setrlimit(which, (allowed, allowed))


def _mount(source: str | Path | None, target: str | Path, kind: str | None, flags: int, options: str = "") -> None:
    def text(value: str | Path | None) -> bytes | None:
        return None if value is None else os.fsencode(value)

    _call("mount", text(source), text(target), text(kind), ctypes.c_ulong(flags), options.encode() or None)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1:])
