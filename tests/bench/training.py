"""How fast training is, beside loops written by hand and Keras `fit`: `make bench-training`.

For each model and strategy it starts a Lockstep job as `python -m workers.training` does, reporting every step, and
the rivals (rivals.py) in processes of their own that have the same devices. Then they train by turns, a window each,
while all others are stopped (SIGSTOP), for several rounds: what else the machine does slows all of them alike. The
figures are steps per second, medians over the rounds; Lockstep's are counted from its own events.

    make bench-training ARGS="--model mlp --strategy mirrored --rounds 5 --write docs/benchmarks.md"
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from workers.contract.events import parse_event
from workers.contract.spec import parse
from workers.gang import Gang
from workers.training.here import HOST, place_here

SKIP_SECONDS = 1.0
"""After it was woken, until the steps per call have found their number again."""
PATIENCE_SECONDS = 240
MARK = "<!-- bench-training -->"
MOST_OF_A_REASON = 200

MODELS = {
    "mlp": (
        {"name": "mlp", "options": {"units": [256, 128], "dropout": [0, 0]}},
        {"shape": [8, 8, 1], "samples": 25_600},
        64,
    ),
    "cnn": (
        {"name": "cnn", "options": {"filters": [32, 64], "units": 128, "dropout": 0}},
        {"shape": [28, 28, 1], "samples": 6_400},
        64,
    ),
    "resnet18": (
        {"name": "resnet", "options": {"depth": 18, "stem": "small"}},
        {"shape": [16, 16, 3], "samples": 1_600},
        16,
    ),
}
"""Model, synthetic images, global batch."""
STRATEGIES = {
    "one_device": {"device": "cpu"},
    "mirrored": {"devices": 2, "device_type": "cpu"},
    "multi_worker_mirrored": {"workers": 2, "device_type": "cpu"},
    "central_storage": {"devices": 2, "device_type": "cpu"},
    "parameter_server": {"workers": 2, "device_type": "cpu"},
}
LOOPS = ("bare", "gathered", "fit", "fit_call", "fit_tensorboard")
TITLES = {
    "lockstep": "**Lockstep**",
    "bare": "by hand, tf.data",
    "gathered": "by hand, data on the device",
    "fit": "`fit`",
    "fit_call": "`fit`, as many steps a call",
    "fit_tensorboard": "`fit` + TensorBoard",
}


def job(model, strategy):
    chosen, images, batch = MODELS[model]
    return parse(
        {
            "name": "bench",
            "dataset": {"name": "synthetic_images", "options": images},
            "model": chosen,
            "strategy": {"name": strategy, "options": STRATEGIES[strategy]},
            "training": {
                "steps": 100_000_000,
                "global_batch": batch,
                "optimizer": {"name": "rmsprop", "learning_rate": 1e-4},
                "validation_split": 0,
            },
        }
    )


class Contender:
    """The processes of a job, as Lockstep starts them."""

    def __init__(self, spec, **module):
        self.run = Path(tempfile.mkdtemp(prefix="bench-training-"))
        self.gang = Gang(self.run, spec, place_here(spec), HOST, 1.0, **module)
        self.gang.start()

    def end(self):
        self.gang.stop()
        shutil.rmtree(self.run, ignore_errors=True)

    def wait(self, found, what):
        """What `found` returns once it is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = found()
            if answer:
                return answer
            ended = self.gang.poll(timeout=0.02)
            if ended or time.monotonic() > deadline:
                logs = "\n".join(log.read_text()[-3000:] for log in (self.run / "logs").glob("*.stderr"))
                raise SystemExit(f"{what} did not come ({ended}):\n{logs}")


class Lockstep(Contender):
    """The engine, its reporter writing events; it trains but for the time within `asleep`."""

    def __init__(self, spec):
        super().__init__(spec)
        self._events = self.run / "events" / f"{self.gang.processes[0].name}.jsonl"
        self._offset = 0
        self._steps, self._calls = [], []
        self.wait(self._read, "the first steps")

    def measure(self, seconds):
        """Steps per second, and steps per call."""
        time.sleep(SKIP_SECONDS)
        began = time.time()
        time.sleep(seconds)
        self.wait(lambda: self._read() > began + seconds, "the next steps")
        steps = [moment for moment in self._steps if moment >= began]
        calls = [moment for moment in self._calls if moment >= began]
        return (len(steps) - 1) / (max(steps) - min(steps)), max(1, round(len(steps) / max(1, len(calls))))

    @contextmanager
    def asleep(self):
        """For less than the 10 s after which the workers of a cluster give one another up."""
        self._signal(signal.SIGSTOP)
        yield
        self._signal(signal.SIGCONT)
        time.sleep(0.2)

    def _read(self):
        """When the newest step that was told had ended, 0.0 before any but the compiled ones."""
        content = b""
        if self._events.exists():
            with self._events.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines(keepends=True):
            event = parse_event(line)
            for series in event.series if event.type == "points" else ():
                if (series.name, series.replica) == ("loss", None):
                    self._steps += series.times
                elif (series.name, series.replica) == ("throughput", None):
                    self._calls += series.times
        return self._steps[-1] if self._calls else 0.0

    def _signal(self, number):
        for pid in self.gang.pids.values():
            with suppress(ProcessLookupError):
                os.killpg(pid, number)


class Rivals(Contender):
    """The other loops, each for as many steps as it is told; `fails` says which do not work, and why."""

    def __init__(self, spec):
        super().__init__(spec, module="tests.bench.rivals")
        self._orders = 0
        self._speeds = {}
        self.fails = {}
        roles = {process.role for process in self.gang.processes}
        waited = [p.name for p in self.gang.processes if p.role == ("chief" if "chief" in roles else "worker")]
        self.wait(lambda: all((self.run / f"ready-{name}").exists() for name in waited), "the rivals")

    def prepare(self, loop, seconds):
        """Compile, and find out how many steps fill a window."""
        steps = 3 * self.call_of(loop)
        taken = self._order(loop, steps) and self._order(loop, steps)
        while taken and taken < seconds / 8:
            steps *= 4
            taken = self._order(loop, steps)
        if taken:
            self._speeds[loop] = steps / taken

    def measure(self, loop, seconds):
        """Steps per second, or None where the loop fails."""
        if loop not in self._speeds:
            return None
        call = self.call_of(loop)
        steps = max(3, round(self._speeds[loop] * seconds / call)) * call
        taken = self._order(loop, steps)
        if taken:
            self._speeds[loop] = steps / taken
        return taken and self._speeds[loop]

    def call_of(self, loop):
        """Steps per device call: what Lockstep has found best, where it can be chosen."""
        return self.call if loop in ("bare", "gathered", "fit_call") else 1

    def _order(self, loop, steps):
        """Seconds, or None when it failed."""
        if loop in self.fails:
            return None
        order = {"loop": loop.removesuffix("_call"), "steps": steps, "call": self.call_of(loop)}
        with (self.run / "orders").open("a") as file:
            file.write(json.dumps(order) + "\n")
        self._orders += 1
        found = json.loads(self.wait(self._answer, f"the answer of {loop}"))
        if "fails" in found:
            self.fails[loop] = found["fails"]
        return found.get("seconds")

    def _answer(self):
        file = self.run / "answers"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return lines[self._orders - 1] if len(lines) == self._orders and lines[-1].endswith("\n") else None


def measure(model, strategy, rounds, seconds):
    """A row: steps per second of each loop, a list with a value a round, and which loops fail."""
    spec = job(model, strategy)
    loops = [loop for loop in LOOPS if loop != "gathered" or strategy == "one_device"]
    speeds = {loop: [] for loop in ("lockstep", *loops)}
    with ExitStack() as ends:
        rivals = Rivals(spec)
        ends.callback(rivals.end)
        lockstep = Lockstep(spec)
        ends.callback(lockstep.end)
        _, rivals.call = lockstep.measure(seconds)
        for loop in loops:
            rivals.prepare(loop, seconds)
        for _ in range(rounds):
            speeds["lockstep"].append(lockstep.measure(seconds)[0])
            for loop in loops:
                with lockstep.asleep():
                    speeds[loop].append(rivals.measure(loop, seconds))
    medians = {loop: statistics.median(found) for loop, found in speeds.items() if None not in found}
    return Row(model, strategy, rivals.call, medians, rivals.fails, os.getloadavg()[0])


class Row(NamedTuple):
    """Steps per second by loop; `call` steps per device call; why loops fail; the load of the last minute."""

    model: str
    strategy: str
    call: int
    speeds: dict
    fails: dict
    load: float

    def cells(self):
        names = (self.model, self.strategy.replace("_", " "), str(self.call))
        speeds = [self._speed(loop) for loop in TITLES]
        ratios = [self._ratio(loop) for loop in ("bare", "fit_call", "fit_tensorboard")]
        return [*names, *speeds, *ratios, f"{self.load:.1f}"]

    def _speed(self, loop):
        if loop in self.fails:
            return "fails"
        return f"{self.speeds[loop]:,.{0 if self.speeds[loop] >= 100 else 1}f}" if loop in self.speeds else ""

    def _ratio(self, loop):
        return f"{self.speeds['lockstep'] / self.speeds[loop]:.2f}" if loop in self.speeds else ""


def page(rows, rounds):
    """The table in Markdown, and why some cells are empty."""
    heads = ["model", "strategy", "steps a call", *TITLES.values()]
    heads += ["Lockstep / by hand", "Lockstep / `fit`, as many a call", "Lockstep / `fit` + TensorBoard", "load"]
    lines = [f"Steps per second, medians of {rounds} rounds by turns; {len(os.sched_getaffinity(0))} cores.", ""]
    lines += ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    reasons = {}
    for row in rows:
        for loop, reason in row.fails.items():
            reasons.setdefault((row.strategy.replace("_", " "), reason[:MOST_OF_A_REASON]), set()).add(TITLES[loop])
    if reasons:
        lines += ["", "What Keras says where it fails:", ""]
    lines += [f"- {strategy}, {' and '.join(sorted(who))}: {reason}" for (strategy, reason), who in reasons.items()]
    return "\n".join(lines) + "\n"


def write(file, text):
    """Between the two marks of a page."""
    before, _, after = file.read_text().split(MARK)
    file.write_text(f"{before}{MARK}\n{text}{MARK}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, action="append", help="only this one; may be given again")
    parser.add_argument("--strategy", choices=STRATEGIES, action="append", help="only this one; may be given again")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a window, at most 6")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table there, between the two marks")
    chosen = parser.parse_args()
    rows = []
    for model in chosen.model or MODELS:
        for strategy in chosen.strategy or STRATEGIES:
            rows.append(measure(model, strategy, chosen.rounds, min(6.0, chosen.seconds)))
            print(" | ".join(rows[-1].cells()), file=sys.stderr, flush=True)
    text = page(rows, chosen.rounds)
    print(text)
    if chosen.write is not None:
        write(chosen.write, text)


if __name__ == "__main__":
    sys.exit(main())
