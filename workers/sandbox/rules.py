"""Rules that a process asks the kernel to hold it to for ever: Landlock for files, seccomp for system calls.

They need no rights, so they hold where a container forbids namespaces, and they stand behind namespaces where it does
not. Standard library alone, as in enter.py. Sources: https://docs.kernel.org/userspace-api/landlock.html and
https://docs.kernel.org/userspace-api/seccomp_filter.html.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
WRITE_FILE, READ_DIR = 1 << 1, 1 << 3
READ = 1 << 0 | 1 << 2 | READ_DIR
"""Execute, read a file, list a folder."""
OF_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14
ALL_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Every right over files that a version of Landlock knows."""
ALL_TCP, OTHER_PROCESSES = 3, 3
READABLE = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system", "/dev/urandom")

PR_SET_SECCOMP, FILTER = 22, 2
LOAD, EQUAL, AT_LEAST, ANY_BIT, ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, MACHINE, FIRST = 0, 4, 16
"""Offsets in what a filter is shown of a call."""
CLONE_THREAD = 0x10000
EPERM, ENOSYS = 1, 38
X32 = 0x40000000
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS: dict[str, dict[str, int]] = {
    "x86_64": {
        "socket": 41, "fork": 57, "vfork": 58, "kill": 62, "tkill": 200, "rt_sigqueueinfo": 129,
        "rt_tgsigqueueinfo": 297, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
        "memfd_create": 319, "open_by_handle_at": 304, "bpf": 321, "userfaultfd": 323, "perf_event_open": 298,
        "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "setns": 308, "mount": 165,
        "shmget": 29, "semget": 64, "msgget": 68, "clone": 56, "tgkill": 234,
    },
    "aarch64": {
        "socket": 198, "kill": 129, "tkill": 130, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "ptrace": 117,
        "process_vm_readv": 270, "process_vm_writev": 271, "memfd_create": 279, "open_by_handle_at": 265, "bpf": 280,
        "userfaultfd": 282, "perf_event_open": 241, "add_key": 217, "request_key": 218, "keyctl": 219, "unshare": 97,
        "setns": 268, "mount": 40, "shmget": 194, "semget": 190, "msgget": 186, "clone": 220, "tgkill": 131,
    },
}  # fmt: skip
"""Refused: what reaches other processes, the network, or memory that no limit counts. The last two only in part."""
EVERYWHERE = {
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "memfd_secret": 447,
}
CLONE3 = 435

_libc = ctypes.CDLL(None, use_errno=True)


def hold_to_files(visible: Iterable[str], own: str) -> None:
    """From now on only `visible` can be read, and only the folder `own` written. Raises OSError without Landlock."""
    version = _call("syscall", CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    handled = next(rights for least, rights in sorted(ALL_FILES.items(), reverse=True) if version >= least)
    tcp, others = ALL_TCP * (version >= 4), OTHER_PROCESSES * (version >= 6)
    attributes = struct.pack("=QQQ", handled, tcp, others)[: 8 if version < 4 else 16 if version < 6 else 24]
    rules = _call("syscall", CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    for path in (*visible, *READABLE):
        _allow(rules, path, READ & handled)
    _allow(rules, "/dev/null", (READ | WRITE_FILE) & handled)
    _allow(rules, own, handled)
    _call("syscall", RESTRICT_SELF, rules, 0)
    os.close(rules)


def hold_to_calls() -> None:
    """No other process, no network, no program besides this one: threads only. Raises OSError where it cannot be."""
    name = platform.machine()
    if name not in MACHINES:
        raise OSError(f"the numbers of system calls on {name} are not known here")
    calls = dict(CALLS[name])
    clone, tgkill = calls.pop("clone"), calls.pop("tgkill")
    program = [(LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, MACHINES[name]), (ANSWER, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    for number in (*calls.values(), *EVERYWHERE.values()):
        program += [(EQUAL, 0, 1, number), (ANSWER, 0, 0, ERRNO | EPERM)]
    program += [(AT_LEAST, 0, 1, X32), (ANSWER, 0, 0, ERRNO | ENOSYS)]
    # Its flags lie in memory, where a filter cannot look; the C library then asks by `clone`.
    program += [(EQUAL, 0, 1, CLONE3), (ANSWER, 0, 0, ERRNO | ENOSYS)]
    for number, test, value in ((clone, ANY_BIT, CLONE_THREAD), (tgkill, EQUAL, os.getpid())):
        program += [(EQUAL, 0, 3, number), (LOAD, 0, 0, FIRST), (test, 1, 0, value), (ANSWER, 0, 0, ERRNO | EPERM)]
        program += [(LOAD, 0, 0, NUMBER)]
    program += [(ANSWER, 0, 0, ALLOW)]
    text = b"".join(struct.pack("=HBBI", *line) for line in program)
    kept = ctypes.create_string_buffer(text, len(text))
    _call("prctl", PR_SET_SECCOMP, FILTER, struct.pack("@HP", len(program), ctypes.addressof(kept)))


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        rights &= OF_FILES
    _call("syscall", ADD_RULE, rules, 1, struct.pack("=Qi", rights, place), 0)
    os.close(place)


def _call(name: str, *arguments: object) -> int:
    answer = int(getattr(_libc, name)(*arguments))
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return answer
