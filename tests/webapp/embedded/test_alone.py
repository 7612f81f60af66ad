"""Two demos never share a home, and a killed one is over before the next begins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_for
from webapp.embedded.alone import AlreadyRunning, alone

HOLD = """
import pathlib, subprocess, sys, time
from webapp.embedded.alone import alone
with alone(pathlib.Path(sys.argv[1])) as lock:
    child = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    print(child.pid, flush=True)
    time.sleep(60)
"""


def test_it_refuses_a_second_demo_of_the_same_home_at_once(tmp_path: Path) -> None:
    with alone(tmp_path):
        with (
            pytest.raises(AlreadyRunning, match=f"runs already in {tmp_path}: .*LOCKSTEP_HOME"),
            alone(tmp_path),
        ):
            pass
        with alone(tmp_path / "other"):
            pass
    with alone(tmp_path):
        pass


def test_it_waits_for_what_a_killed_demo_has_left(tmp_path: Path) -> None:
    demo = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    child = int(demo.stdout.readline())
    try:
        demo.kill()
        demo.wait()
        demo.stdout.close()
        with pytest.raises(AlreadyRunning, match="earlier demo"), alone(tmp_path, leftover_seconds=0.2):
            pass
    finally:
        subprocess.run(["kill", str(child)], check=True)

    def free() -> bool:
        try:
            with alone(tmp_path, leftover_seconds=0.0):
                return True
        except AlreadyRunning:
            return False

    wait_for(free, what="the home to be free")
