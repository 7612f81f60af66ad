"""A private network for the processes of one job: loopback only, and nobody else's.

TensorFlow's gRPC server listens on every interface and obeys whoever connects; in a network namespace of the job's own
only the job's processes can. Linux only, and only where the kernel lets us; `available()` finds out once.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import os
import socket
import struct
import sys
from types import TracebackType

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP_RUNNING = 0x1 | 0x40
_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceRefused(OSError):
    """The kernel does not let this user have a network of its own."""


class PrivateNetwork:
    """Held open by file descriptors: it lives as long as this object or a process in it."""

    def __init__(self) -> None:
        """Raises NamespaceRefused."""
        self._fds: list[int] = []
        # Root needs no user namespace, and keeps its rights to files without one.
        for flags in (CLONE_NEWNET, CLONE_NEWUSER | CLONE_NEWNET):
            if self._create(flags):
                return
        raise NamespaceRefused("this system allows no private network namespace (unshare failed)")

    def enter(self) -> None:
        """Move the calling process, which must have one thread, into the network."""
        for fd in self._fds:
            if _libc.setns(fd, 0):
                raise NamespaceRefused(ctypes.get_errno(), "setns")

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()

    def __enter__(self) -> PrivateNetwork:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _create(self, flags: int) -> bool:
        """A child makes the namespaces, we open them, the child goes."""
        ready_read, ready_write = os.pipe()
        done_read, done_write = os.pipe()
        uid, gid = os.geteuid(), os.getegid()
        child = os.fork()
        if child == 0:
            os.close(done_write)
            _live_in_new_namespaces(flags, uid, gid, ready_write, done_read)
        os.close(ready_write)
        os.close(done_read)
        try:
            made = os.read(ready_read, 1) == b"1"
            if made:
                names = ["user", "net"] if flags & CLONE_NEWUSER else ["net"]
                self._fds = [os.open(f"/proc/{child}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]
            return made
        finally:
            os.close(ready_read)
            os.close(done_write)
            os.waitpid(child, 0)


def _live_in_new_namespaces(flags: int, uid: int, gid: int, ready: int, done: int) -> None:
    """The life of the child: never returns."""
    try:
        if _libc.unshare(flags):
            os._exit(1)
        if flags & CLONE_NEWUSER:
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{uid} {uid} 1")
            _write("/proc/self/gid_map", f"{gid} {gid} 1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP_RUNNING))
        os.write(ready, b"1")
        os.read(done, 1)
    finally:
        os._exit(0)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


@functools.cache
def available() -> bool:
    """Whether jobs can have a network of their own here. Probed once, by making one."""
    if sys.platform != "linux":
        return False
    try:
        with PrivateNetwork():
            return True
    except OSError:
        return False
