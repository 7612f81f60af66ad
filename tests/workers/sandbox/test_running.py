"""The throw-away process is shut in and ended, in each way that this machine allows."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_for
from tests.workers.sandbox import hostile
from workers.contract.library import Confinement
from workers.sandbox import confinement
from workers.sandbox.confinement import Limits
from workers.sandbox.running import Outcome, run

SHORT = Limits(memory_bytes=2**30, cpu_seconds=1, wall_seconds=60)
ENOUGH = Limits(memory_bytes=2**28, cpu_seconds=60, wall_seconds=120)
"""For what another limit is to end, however busy the machine is."""


KNOWN: tuple[Confinement, ...] = ("landlock", "namespaces", "bubblewrap")
SHUT_IN = [kind for kind in KNOWN if confinement.works(kind)]
KINDS: list[Confinement] = ["limits", *SHUT_IN]


def play(tmp_path: Path, program: str, kind: Confinement, limits: Limits = SHORT) -> Outcome:
    """What the throw-away process makes of a program."""
    script = tmp_path / "program.py"
    script.write_text(program)
    return run([str(script)], files=(script,), limits=limits, kind=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_it_hands_over_what_is_answered_and_printed(tmp_path: Path, kind: Confinement) -> None:
    code = "import os; os.write(int(os.environ['LOCKSTEP_ANSWER_FD']), b'yes'); print('hello')"
    outcome = play(tmp_path, code, kind)
    assert (outcome.answer, outcome.output, outcome.fault) == (b"yes", "hello\n", "")
    assert outcome.confinement == kind


@pytest.mark.parametrize("kind", KINDS)
def test_it_ends_what_never_ends(tmp_path: Path, kind: Confinement) -> None:
    assert "more than 1 s of processor time" in play(tmp_path, hostile.ENDLESS, kind).fault
    asleep = play(tmp_path, hostile.ASLEEP, kind, Limits(wall_seconds=1.5))
    assert asleep.fault == "was ended after 2 s of time"


@pytest.mark.parametrize("kind", KINDS)
def test_it_bounds_memory_and_words(tmp_path: Path, kind: Confinement) -> None:
    assert "MemoryError" in play(tmp_path, hostile.GREEDY, kind, ENOUGH).output
    loud = play(tmp_path, hostile.LOUD, kind)
    assert len(loud.output) < SHORT.output_bytes + 10
    assert loud.output.endswith("[cut]")
    assert play(tmp_path, hostile.TALKATIVE, kind).fault == "answered with more than 1,024 KiB"


@pytest.mark.parametrize("kind", KINDS)
def test_it_has_no_secret_in_its_environment(
    tmp_path: Path, kind: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "do-not-tell")
    monkeypatch.setenv("REDIS_URL", "redis://:do-not-tell@localhost")
    code = "import os; print(dict(os.environ))" if kind == "limits" else hostile.ENVIRONMENT
    outcome = play(tmp_path, code, kind)
    assert "LOCKSTEP_ANSWER_FD" in outcome.output
    assert "do-not-tell" not in outcome.output


@pytest.mark.parametrize("kind", SHUT_IN)
def test_it_reaches_no_network(tmp_path: Path, kind: Confinement) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        program = hostile.NETWORK.replace("PORT", str(server.getsockname()[1]))
        said = play(tmp_path, program, kind).output
    assert said.count("refused:") == 2
    assert "connected" not in said


@pytest.mark.parametrize("kind", SHUT_IN)
def test_it_writes_nowhere_but_to_its_own_folder(tmp_path: Path, kind: Confinement) -> None:
    paths = [str(Path.cwd() / "workers"), sys.prefix, "/usr", str(tmp_path), "/dev/shm"]
    said = play(tmp_path, hostile.WRITER.replace("PATHS", repr(paths)), kind).output
    assert not list(tmp_path.rglob("planted"))
    assert not Path("/dev/shm/planted").exists()
    assert "planted in /usr" not in said
    assert f"planted in {sys.prefix}" not in said
    assert not (Path.cwd() / "workers" / "planted").exists()


@pytest.mark.parametrize("kind", SHUT_IN)
def test_it_sees_neither_the_host_nor_other_uploads(tmp_path: Path, kind: Confinement) -> None:
    other = tmp_path / "of-another-team.keras"
    other.write_text("theirs")
    said = play(
        tmp_path, hostile.CURIOUS.replace("PATHS", repr([str(tmp_path), str(other), "/etc/passwd"])), kind
    ).output
    assert "of-another-team" not in said
    assert "theirs" not in said
    assert "root:" not in said


@pytest.mark.parametrize("kind", KINDS)
def test_it_starts_and_reaches_no_other_process(tmp_path: Path, kind: Confinement) -> None:
    said = play(tmp_path, hostile.FORKING, kind).output
    assert said.count("refused:") == 2
    assert "begun" not in said
    said = play(tmp_path, hostile.SIGNALLING.replace("OTHER", str(os.getpid())), kind).output
    assert said.count("refused:") == 2


@pytest.mark.parametrize("kind", KINDS)
def test_it_starts_no_thousands_of_threads(tmp_path: Path, kind: Confinement) -> None:
    outcome = play(tmp_path, hostile.THREADS, kind, ENOUGH)
    assert "started" not in outcome.output.splitlines()
    assert "it started over" in outcome.fault or "can't start new thread" in outcome.output


@pytest.mark.parametrize("kind", KINDS)
def test_it_fills_no_disk(tmp_path: Path, kind: Confinement) -> None:
    outcome = play(tmp_path, hostile.FILLING, kind, ENOUGH)
    assert "filled" not in outcome.output
    assert "No space left" in outcome.output or "wrote more than 256 MiB to the disk" in outcome.fault


@pytest.mark.parametrize("kind", SHUT_IN)
def test_it_reads_no_other_process_s_environment(tmp_path: Path, kind: Confinement) -> None:
    with subprocess.Popen(["sleep", "60"], env={"SECRET_KEY": "do-not-tell"}) as other:
        try:
            outcome = play(tmp_path, hostile.ENVIRONMENT, kind, ENOUGH)
        finally:
            other.kill()
    assert "LOCKSTEP_ANSWER_FD" in outcome.output
    assert "do-not-tell" not in outcome.output


@pytest.mark.parametrize("kind", KINDS)
def test_it_leaves_nothing_running(tmp_path: Path, kind: Confinement) -> None:
    before = {process.pid for process in psutil.process_iter()}
    play(tmp_path, hostile.DETACHED, kind)

    def stragglers() -> list[str]:
        new = [process for process in psutil.process_iter(["cmdline"]) if process.pid not in before]
        return [" ".join(each.info["cmdline"] or []) for each in new if str(tmp_path) in str(each.info["cmdline"])]

    wait_for(lambda: not stragglers(), what="the detached process to be gone")
