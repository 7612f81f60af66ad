"""Why an attempt ended on this host, in one sentence: which of several deaths was the cause, which the consequence."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Literal

from workers.contract.events import Failed
from workers.gang import ProcessExit

Outcome = Literal["succeeded", "failed", "cancelled", "paused"]
TAIL_LINES = 40
TAIL_CHARACTERS = 8_000
CAUSE_CHARACTERS = 900
SYMPTOMS = {"peer", "network"}
"""Reasons of a Failed event that another process's death explains."""

_MEMORY = re.compile(
    r"RESOURCE_EXHAUSTED|ResourceExhaustedError|OOM when allocating|out of memory|MemoryError|std::bad_alloc", re.I
)
_LOST_PEER = re.compile(
    r"coordination service|CoordinationService|Connection reset by peer|Socket closed|UnavailableError|heartbeat", re.I
)
_EXCEPTION = re.compile(r"^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b.*")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the Ended event says. `time` is when the cause happened (seconds since 1970, None for now): with several
    hosts the earliest has the cause, even if ending its other processes took it longer than the others."""

    outcome: Outcome
    cause: str = ""
    target: str | None = None
    log_tail: str = ""
    time: float | None = None


@dataclasses.dataclass(frozen=True)
class Witness:
    """What is known of one process that did not end well. `order` is its place among the deaths; `ours` that we ended
    it, so its way of ending says nothing, but a Failed event that it had written before still does."""

    exit: ProcessExit
    order: int
    ours: bool
    failed: Failed | None
    stderr: str
    time: float | None = None

    @property
    def rank(self) -> int:
        """Smaller is more likely the cause; among equals the first death is."""
        if self.failed is not None:
            return 2 if self.failed.reason in SYMPTOMS else 0
        if self.ours:
            return 3
        if self.exit.signal not in {None, "SIGABRT"}:
            return 0
        # TensorFlow aborts a process whose peer is gone.
        return 2 if _LOST_PEER.search(self.stderr[-4000:]) else 1


def judge(witnesses: list[Witness]) -> Verdict:
    """The verdict on a failed gang. `witnesses` are the processes that did not exit with 0, at least one."""
    culprit = min(witnesses, key=lambda witness: (witness.rank, witness.order))
    cause = cut(_sentence(culprit), CAUSE_CHARACTERS)
    return Verdict("failed", cause, culprit.exit.name, tail_of(culprit.stderr), culprit.time)


def tail_of(stderr: str) -> str:
    """The last lines of a log, as a person reads them: without colours, a redrawn line as it was last."""
    lines = [_ANSI.sub("", line.rstrip("\r").rpartition("\r")[2]) for line in stderr.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines[-TAIL_LINES:])[-TAIL_CHARACTERS:]


def cut(text: str, limit: int) -> str:
    """One line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def describe(code: int | None, signal: str | None) -> str:
    """`exited with code 3`, `was killed by SIGKILL`."""
    return f"was killed by {signal}" if signal else f"exited with code {code}"


def _sentence(witness: Witness) -> str:
    name, end = witness.exit.name, witness.exit
    if witness.failed is not None:
        cause = witness.failed.cause
        return cause if name in cause else f"{name}: {cause}"
    if end.signal == "SIGKILL":
        return f"{name} was killed by SIGKILL (often the system's out-of-memory killer)."
    if end.signal in {"SIGTERM", "SIGINT", "SIGHUP"}:
        return f"{name} was ended from outside by {end.signal}."
    if end.signal:
        return f"{name} crashed with {end.signal}.{_because(witness)}"
    if _MEMORY.search(witness.stderr):
        return f"{name} ran out of memory.{_because(witness, _MEMORY)}"
    return f"{name} {describe(end.code, end.signal)}.{_because(witness)}"


def _because(witness: Witness, pattern: re.Pattern[str] = _EXCEPTION) -> str:
    lines = [_ANSI.sub("", line).strip() for line in witness.stderr.splitlines()]
    telling = [line for line in lines if pattern.search(line)]
    return f" Its log says: {cut(telling[-1], 300)}" if telling else ""


def devices_shown(kind: str, indexes: tuple[int, ...]) -> tuple[str, ...]:
    """Devices as people read them: cpu:0, gpu:1."""
    return tuple(f"{kind}:{index}" for index in indexes)


def all_succeeded(exits: Mapping[str, ProcessExit], names: list[str]) -> bool:
    """Whether every one of `names` is known to have exited with 0."""
    return all(name in exits and exits[name].code == 0 for name in names)
