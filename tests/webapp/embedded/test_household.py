"""The one-machine household: starts, restarts and ends real processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_for
from webapp.embedded.household import Household

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def household(tmp_path: Path, said: list[str]) -> Household:
    return Household(tmp_path, os.environ, said.append)


def test_it_keeps_each_members_output(household: Household, tmp_path: Path) -> None:
    household.add("greeter", sys.executable, "-c", "print('good morning')")
    log = tmp_path / "logs" / "greeter.log"
    wait_for(lambda: "good morning" in log.read_text(), what="the greeting")
    household.end()


def test_it_starts_again_what_died_and_says_so(household: Household, said: list[str]) -> None:
    member = household.add("sleeper", sys.executable, "-c", SLEEP)
    assert member.process is not None
    first = member.process.pid
    member.process.kill()
    member.process.wait()

    def restarted() -> bool:
        household.tend()
        return member.running and member.process is not None and member.process.pid != first

    wait_for(restarted, what="the restart")
    assert "sleeper ended (-9)" in said[0]
    household.end()


def test_it_ends_all_even_those_that_ignore_term(household: Household) -> None:
    members = [household.add(name, sys.executable, "-c", STUBBORN) for name in ("one", "two")]
    for member in members:
        wait_for(lambda log=member.log: "up" in log.read_text(), what="the member")
    household.end(grace=0.2)
    assert not any(member.running for member in members)


def test_it_leaves_nobody_behind_when_it_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, sys, time; from webapp.embedded.household import Household; "
        "house = Household(pathlib.Path(sys.argv[1]), os.environ, print); "
        f"member = house.add('child', sys.executable, '-c', {SLEEP!r}); "
        "pathlib.Path(sys.argv[1], 'pid').write_text(str(member.process.pid)); time.sleep(60)"
    )
    parent = psutil.Popen([sys.executable, "-c", script, str(tmp_path)])
    pid_file, log = tmp_path / "pid", tmp_path / "logs" / "child.log"
    wait_for(lambda: pid_file.exists() and pid_file.read_text() and "up" in log.read_text(), what="the child")
    child = psutil.Process(int(pid_file.read_text()))
    parent.kill()
    parent.wait()
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, what="the child's end")


def test_it_says_once_why_a_member_cannot_stay(household: Household, said: list[str]) -> None:
    member = household.add("host", sys.executable, "-c", "import sys; sys.exit('the folder cannot be written')")
    starts = set()

    def tended() -> bool:
        household.tend()
        starts.add(member.started)
        return len(starts) > 2

    wait_for(tended, what="two restarts")
    household.end()
    assert [text.rpartition(": ")[2] for text in said] == ["the folder cannot be written"]
