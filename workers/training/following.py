"""Merges the event files of a run's processes into one, as they grow."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from workers.contract.events import Artifact, Event, Failed, Finished, Phase, parse_event
from workers.contract.kinds import WORK

TAIL_BYTES = 8_000
TAIL_LINES = 15


class Followed:
    """`RUN/events/*.jsonl` into `RUN/events.jsonl` and onto a stream, whole lines, by time within each look."""

    def __init__(self, run: Path, echo: BinaryIO) -> None:
        self._folder = run / "events"
        self._echo = echo
        self._merged = (run / "events.jsonl").open("ab")
        self._offsets: dict[Path, int] = {}
        self.failures: dict[str, Failed] = {}
        self.finished: Finished | None = None
        self.at_work: set[str] = set()
        self.artifacts: list[str] = []

    def look(self) -> None:
        """Take over what is new. Raises BrokenPipeError when nobody reads the stream any more."""
        found: list[tuple[float, bytes]] = []
        for file in sorted(self._folder.glob("*.jsonl")):
            newest = 0.0
            for line in self._new(file):
                event = parse_event(line)
                self._note(event)
                # The order within a file is the truth, whatever the times in it say.
                newest = max(newest, event.time)
                found.append((newest, line))
        lines = b"".join(line for _, line in sorted(found, key=lambda pair: pair[0]))
        self._merged.write(lines)
        self._merged.flush()
        self._echo.write(lines)
        self._echo.flush()

    def close(self) -> None:
        """Nothing is written from here on."""
        self._merged.close()

    def _new(self, file: Path) -> list[bytes]:
        offset = self._offsets.get(file, 0)
        with file.open("rb") as stream:
            stream.seek(offset)
            content = stream.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._offsets[file] = offset + len(whole)
        return whole.splitlines(keepends=True)

    def _note(self, event: Event) -> None:
        if isinstance(event, Failed):
            self.failures.setdefault(event.process, event)
        elif isinstance(event, Finished):
            self.finished = event
        elif isinstance(event, Artifact):
            self.artifacts.append(event.path)
        elif isinstance(event, Phase) and event.phase in WORK.values():
            self.at_work.add(event.process)


def log_tail(run: Path, process: str) -> str:
    """The last lines that a process wrote to stderr."""
    file = run / "logs" / f"{process}.stderr"
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - TAIL_BYTES))
        lines = stream.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-TAIL_LINES:])
