"""Which death was the cause, and how it is said."""

from __future__ import annotations

from workers.contract.events import Failed
from workers.gang import ProcessExit
from workers.host.verdict import TAIL_LINES, Witness, judge, tail_of


def witness(
    name: str,
    order: int,
    *,
    code: int | None = 1,
    signal: str | None = None,
    ours: bool = False,
    reason: str | None = None,
    stderr: str = "",
) -> Witness:
    failed = None
    if reason is not None:
        failed = Failed.model_validate({"time": 0, "process": name, "cause": f"a {reason} fault", "reason": reason})
    return Witness(ProcessExit(name, None if signal else code, signal), order, ours, failed, stderr)


def test_it_prefers_who_was_killed_to_who_lost_a_peer() -> None:
    verdict = judge([witness("worker-0", 0, reason="peer"), witness("worker-1", 1, signal="SIGKILL")])
    assert verdict.target == "worker-1"


def test_it_believes_a_failure_told_by_a_process_that_we_had_to_end() -> None:
    told = witness("worker-1", 1, signal="SIGTERM", ours=True, reason="nan")
    assert judge([witness("worker-0", 0, reason="peer"), told]).cause == "worker-1: a nan fault"


def test_it_does_not_blame_what_it_ended_itself() -> None:
    ended = witness("worker-0", 1, signal="SIGKILL", ours=True)
    assert judge([ended, witness("worker-1", 0, code=1)]).target == "worker-1"


def test_it_does_not_blame_a_process_that_tensorflow_aborted_for_a_lost_peer() -> None:
    aborted = witness(
        "worker-1", 0, signal="SIGABRT", stderr="F0000 Terminating: error from the coordination service\n"
    )
    assert judge([aborted, witness("worker-0", 1, code=1)]).target == "worker-0"


def test_it_blames_an_exit_that_came_before_an_abort() -> None:
    assert judge([witness("worker-1", 1, signal="SIGABRT"), witness("worker-0", 0, code=1)]).target == "worker-0"


def test_it_takes_the_first_of_equals() -> None:
    assert judge([witness("worker-1", 0), witness("worker-0", 1)]).target == "worker-1"


def test_it_quotes_the_exception() -> None:
    stderr = 'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: units must be positive\n'
    assert judge([witness("worker-0", 0, stderr=stderr)]).cause == (
        "worker-0 exited with code 1. Its log says: ValueError: units must be positive"
    )


def test_it_does_not_call_a_polite_signal_a_crash() -> None:
    ended = witness("worker-1", 0, signal="SIGTERM")
    assert judge([ended]).cause == "worker-1 was ended from outside by SIGTERM."


def test_it_keeps_the_cause_to_a_size_that_can_be_stored() -> None:
    stderr = "MemoryError: " + "x" * 100_000
    assert len(judge([witness("worker-0", 0, stderr=stderr)]).cause) <= 900


def test_it_shows_the_last_lines_as_a_person_reads_them() -> None:
    log = "".join(f"line {i}\n" for i in range(100)) + "\r 10%\r 99%\n\x1b[31mred\x1b[0m\n\n"
    lines = tail_of(log).split("\n")
    assert len(lines) == TAIL_LINES
    assert lines[-2:] == [" 99%", "red"]
