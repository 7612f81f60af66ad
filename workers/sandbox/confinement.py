"""How a throw-away process is shut in on this host: by bubblewrap, namespaces, Landlock, or limits alone."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from workers.contract.library import Confinement
from workers.sandbox import enter

ROOT = Path(__file__).resolve().parent.parent.parent
SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/localtime")
PROBE_SECONDS = 20
BESIDE_US = ("landlock", "limits")
"""Those whose processes share process numbers and /tmp with the host."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one throw-away process may use; `output_bytes` of what it prints are kept."""

    memory_bytes: int = 8 * 2**30
    cpu_seconds: int = 180
    wall_seconds: float = 180.0
    file_bytes: int = 2**28
    processes: int = max(512, 8 * (os.cpu_count() or 1))
    output_bytes: int = 16_000
    answer_bytes: int = 2**20


LIMITS = Limits()


@functools.cache
def confinement() -> Confinement:
    """The strictest that works here. Probed once, by running something in it."""
    for kind in ("bubblewrap", "namespaces", "landlock"):
        if works(kind):
            return kind
    return "limits"


def works(kind: Confinement) -> bool:
    """Whether a process can be shut in so on this host, tried with one that does nothing."""
    if kind == "bubblewrap" and not shutil.which("bwrap"):
        return False
    probe = command(kind, [sys.executable, "-S", "-c", "pass"], (), LIMITS)
    with tempfile.TemporaryDirectory() as folder, suppress(OSError, subprocess.TimeoutExpired):
        ended = subprocess.run(
            probe, env=environment({}), capture_output=True, timeout=PROBE_SECONDS, cwd=folder, check=False
        )
        return ended.returncode == 0
    return False


def command(kind: Confinement, inner: list[str], files: tuple[Path, ...], limits: Limits) -> list[str]:
    """`inner` shut in, able to read `files` besides what Python itself needs."""
    visible = _visible(files)
    # Without namespaces the number of processes is counted over all of this user's, which may be many already.
    plan = enter.Plan(
        namespaces=kind == "namespaces",
        landlock=kind == "landlock",
        visible=visible,
        memory_bytes=limits.memory_bytes,
        cpu_seconds=limits.cpu_seconds,
        file_bytes=limits.file_bytes,
        processes=0 if kind in BESIDE_US else limits.processes,
    )
    entering = [sys.executable, "-S", "-m", "workers.sandbox.enter", json.dumps(dataclasses.asdict(plan)), "--", *inner]
    return [*_bubblewrap(visible), *entering] if kind == "bubblewrap" else entering


def environment(further: dict[str, str]) -> dict[str, str]:
    """All that the process finds in its environment: nothing of ours but where libraries lie."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "PYTHONPATH": str(ROOT),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "KERAS_BACKEND": "tensorflow",
        "KERAS_HOME": "/tmp/keras",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
        **kept,
        **further,
    }


def _visible(files: tuple[Path, ...]) -> list[str]:
    """Paths to show, none inside of another one that is shown already."""
    own = [sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent.parent), str(ROOT / "workers")]
    shown: list[str] = []
    for name in (*SYSTEM, *own, *map(str, files)):
        if os.path.lexists(name) and not any(name == other or name.startswith(f"{other}/") for other in shown):
            shown.append(name)
    return shown


def _bubblewrap(visible: list[str]) -> list[str]:
    options = ["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]
    options += ["--tmpfs", "/tmp", "--chdir", "/tmp"]
    for name in visible:
        link = os.path.islink(name)
        options += ["--symlink", os.readlink(name), name] if link else ["--ro-bind", name, name]
    return [shutil.which("bwrap") or "bwrap", *options]
