"""The last word of a run whose disk is full, on a real small file system."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workers.contract.events import Ended, Exited, parse_event

ROOT = Path(__file__).resolve().parents[3]
MOUNT = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" -c "$3" "$1"'
STORY = """
import os, sys
from pathlib import Path
from workers.gang import ProcessExit
from workers.host.journal import Journal
from workers.host.verdict import Verdict
journal = Journal(Path(sys.argv[1]), "here")
journal.reserve()
handle = os.open(Path(sys.argv[1]) / "much", os.O_CREAT | os.O_WRONLY)
try:
    while os.write(handle, bytes(4096)):
        pass
except OSError:
    pass
for number in range(60):
    journal.exited(ProcessExit(f"worker-{number}", 1, None))
journal.ended(Verdict("failed", "worker-0 exited with code 1.", log_tail="x" * 8000))
sys.stdout.write(journal.path.read_text())
"""


def in_small_room(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", *command],
        check=False, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip


def test_a_full_disk_still_takes_the_last_word_and_is_named_in_it(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or in_small_room("mount -t tmpfs none /mnt").returncode:
        pytest.skip("this machine gives no file system of its own to a test")
    done = in_small_room(MOUNT, "sh", str(tmp_path), sys.executable, STORY)
    assert done.returncode == 0, done.stderr
    events = [parse_event(line) for line in done.stdout.encode().splitlines()]
    assert [type(event) for event in events] == [Exited] * 60 + [Ended]
    assert isinstance(events[-1], Ended)
    assert events[-1].cause == (
        f"worker-0 exited with code 1. The disk that holds {tmp_path} is full: make room there, or set LOCKSTEP_RUNS."
    )
