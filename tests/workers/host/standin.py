"""A stand-in for the training engine: a real process that does what the spec's tags say, without TensorFlow.

A tag is `<process>:<behaviour>[:<number>]`; a process without one finishes at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SLEEP = "import time; time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"


def main() -> int:
    place = json.loads(Path(sys.argv[1]).read_text())
    process, run = place["process"]["name"], Path(place["run"])
    tags = [tag.split(":") for tag in place["spec"]["tags"]]
    behaviour, *arguments = next((tag[1:] for tag in tags if tag[0] == process), ["finish"])
    engine = Engine(process, run, place)
    engine.tell(type="phase", phase="preparing", detail="")
    print(f"{process} does {behaviour}", flush=True)
    act: Callable[..., int] = getattr(engine, behaviour)
    return act(*arguments)


class Engine:
    def __init__(self, process: str, run: Path, place: dict[str, Any]) -> None:
        self.process, self.run, self.place = process, run, place
        self._events = run / "events" / f"{process}.jsonl"

    def tell(self, **fields: Any) -> None:
        line = json.dumps({"time": time.time(), "process": self.process, **fields}).encode() + b"\n"
        with open(self._events, "ab", buffering=0) as file:
            file.write(line)

    def finish(self) -> int:
        (self.run / "model.keras").write_bytes(b"weights")
        self.tell(type="finished", metrics={"loss": 0.5}, step=10)
        return 0

    def environment(self) -> int:
        (self.run / f"{self.process}.env").write_text(json.dumps(dict(os.environ)))
        return 0

    def interfaces(self) -> int:
        (self.run / f"{self.process}.net").write_text(Path("/proc/net/dev").read_text())
        (self.run / f"{self.process}.ns").write_text(os.readlink("/proc/self/ns/net"))
        return 0

    def train(self) -> int:
        """Saves a checkpoint when asked, and one more at the pause, with which it ends."""
        self.tell(type="phase", phase="training", detail="")
        step = 10
        while not (self.run / "pause").exists():
            if self.process == "worker-0" and (self.run / "checkpoint-now").exists():
                self.checkpoint(step)
                (self.run / "checkpoint-now").unlink()
                step += 10
            time.sleep(0.02)
        if self.process == "worker-0":
            self.checkpoint(step)
        (self.run / "paused").touch()
        return 0

    def save(self, steps: str) -> int:
        """Checkpoints at the given steps, then the end."""
        for step in steps.split("-"):
            self.checkpoint(int(step))
        return self.finish()

    def go_on(self) -> int:
        """Tells what it was given to go on from."""
        found = Path(self.place["resume"]) / "weights" / "w.bin"
        self.tell(type="phase", phase="loading", detail=found.read_text())
        return self.finish()

    def checkpoint(self, step: int) -> None:
        folder = self.run / "checkpoints" / f"step-{step}"
        partial = folder.with_name(f".{folder.name}")
        (partial / "weights").mkdir(parents=True)
        data = f"weights at {step}".encode()
        (partial / "weights" / "w.bin").write_bytes(data)
        files = {"weights/w.bin": {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}}
        (partial / "manifest.json").write_text(json.dumps({"step": step, "files": files}))
        partial.rename(folder)

    def exit(self, code: str) -> int:
        print("it went wrong", file=sys.stderr)
        return int(code)

    def fail(self, reason: str) -> int:
        self.tell(type="failed", cause=f"{self.process} failed of {reason}", reason=reason, traceback="")
        return 1

    def later(self, reason: str) -> int:
        time.sleep(0.3)
        return self.fail(reason)

    def out_of_memory(self) -> int:
        print(
            "2026-11-21 04:00:00 W RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7 bytes", file=sys.stderr
        )
        return 1

    def signal(self, number: str) -> int:
        os.kill(os.getpid(), int(number))
        return 0

    def desert(self) -> int:
        """Dies once it has begun to train."""
        self.tell(type="phase", phase="training", detail="")
        return self.signal("9")

    def linger(self) -> int:
        """Finishes well after the others had time to die."""
        time.sleep(1.5)
        return self.finish()

    def give_up(self) -> int:
        time.sleep(1.5)
        return self.exit("3")

    def hang(self) -> int:
        time.sleep(600)
        return 0

    def deaf(self) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (self.run / f"{self.process}.deaf").touch()
        return self.hang()

    def family(self) -> int:
        """A child that hears no TERM, and one that also left the session."""
        for new_session in (False, True):
            subprocess.Popen([sys.executable, "-c", DEAF], start_new_session=new_session)
        (self.run / f"{self.process}.family").touch()
        return self.hang()

    def write(self, lines: str, pause: str = "0") -> int:
        """Lines of text that is not all ASCII, to events and both logs, in pieces that end anywhere."""
        for number in range(int(lines)):
            self.tell(type="points", step=number, epoch=1, series=[])
            text = f"{number} größer ∇loss 🙂 {'x' * (number % 200)}\n".encode()
            os.write(1, text[: number % 17])
            os.write(1, text[number % 17 :])
            os.write(2, text)
            time.sleep(float(pause) / 1000)
        os.write(1, "no newline at the end 🙂".encode())
        return 0


if __name__ == "__main__":
    sys.exit(main())
