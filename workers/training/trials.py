"""One process of a gang that takes trainings one after another: `python -m workers.training.trials PLACE.json`.

RUN/trials.json lists them; they share a strategy, its options and so this process's place. What became of each goes to
RUN/outcomes/<process>.jsonl, a line when it begins and a line when it ends. The first failure ends the process: what
runs after a failure in the same process proves nothing. Each goes through the loop as every job does.
"""

from __future__ import annotations

import gc
import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from workers.contract.assignment import Place
from workers.contract.base import Strict
from workers.contract.events import parse_event
from workers.contract.spec import JobSpec
from workers.training.failures import explain, traceback_of
from workers.training.process import import_tensorflow
from workers.training.reporter import Reporter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workers.training.distribution import Distribution

TRIALS, OUTCOMES = "trials.json", "outcomes"
EXACT = 1e-5
"""Greatest distance of a weight in 32 bits, as in the tests of exactness."""
ROUNDED = 0.25
"""The same in 16 bits, as part of how far the reference moved its weights; float16 and bfloat16 stay below 0.1."""


class Trial(Strict):
    """One training. Its weights are compared with the file `reference`, or become it when `record` is set."""

    name: str
    spec: JobSpec
    reference: str
    record: bool = False


class Outcome(Strict):
    """A line of RUN/outcomes/<process>.jsonl; `failure` is empty for what works, and while it runs."""

    name: str
    over: bool
    failure: str = ""


TRIAL_LIST: TypeAdapter[list[Trial]] = TypeAdapter(list[Trial])


def main(arguments: list[str]) -> int:
    """0 when every trial passed or this process only serves, 1 after a failure."""
    place = Place.model_validate_json(Path(arguments[0]).read_bytes())
    trials = TRIAL_LIST.validate_json((Path(place.run) / TRIALS).read_bytes())
    import_tensorflow()
    from workers.training import devices
    from workers.training.distribution import connect
    from workers.training.servers import serving

    devices.configure(place)
    if place.serves:
        reporter = Reporter(Path(place.run) / "events" / f"{place.process.name}.jsonl", place.process.name)
        serving.serve(place, reporter)
        return 0
    outcomes = Path(place.run) / OUTCOMES / f"{place.process.name}.jsonl"
    outcomes.parent.mkdir(exist_ok=True)
    spread: Distribution | None = None
    with outcomes.open("a") as file:
        for number, trial in enumerate(trials):
            _tell(file, Outcome(name=trial.name, over=False))
            here = place.model_copy(update={"spec": trial.spec, "run": str(Path(place.run) / f"trial-{number}")})
            try:
                spread = spread or connect(place)
                failure = _try(here, spread, trial)
            except Exception as error:  # noqa: BLE001  whatever a strategy raises is what we are here to hear
                print(traceback_of(error), file=sys.stderr, flush=True)  # noqa: T201
                failure = explain(error, here)[1]
            _tell(file, Outcome(name=trial.name, over=True, failure=failure))
            if failure:
                return 1
    if spread is not None:
        spread.meet()
    return 0


def _tell(file: Any, outcome: Outcome) -> None:
    file.write(outcome.model_dump_json() + "\n")
    file.flush()


def _try(place: Place, spread: Distribution, trial: Trial) -> str:
    """What is wrong with the finished training; empty when nothing is. Raises what the engine raises."""
    import keras
    import numpy as np

    from workers.training import data
    from workers.training.loop import Loop

    keras.mixed_precision.set_dtype_policy("float32")
    gc.collect()
    events = Path(place.run) / "events" / f"{place.process.name}.jsonl"
    reporter = Reporter(events, place.process.name)
    try:
        loop = Loop(place, spread, data.load(place.spec), reporter)
        loop.build()
        start = _weights(loop.model)
        loop.run()
    finally:
        reporter.close()
    last = parse_event(events.read_bytes().splitlines(keepends=True)[-1])
    if last.type == "finished" and not math.isfinite(last.metrics["loss"]):
        return f"The loss became {last.metrics['loss']}."
    end = _weights(loop.model)
    if trial.record:
        with open(trial.reference, "wb") as file:
            np.savez(file, start=start, end=end)
        return ""
    return _compare(end, trial)


def _weights(model: Any) -> NDArray[Any]:
    """All that is trained, in one row."""
    import numpy as np

    return np.concatenate([np.asarray(weight, np.float32).ravel() for weight in model.trainable_weights])


def _compare(weights: NDArray[Any], trial: Trial) -> str:
    import numpy as np

    reference = np.load(trial.reference)
    if weights.shape != reference["end"].shape:
        return f"It trained {weights.size} weights, and one device trains {reference['end'].size}."
    distance = float(np.abs(weights - reference["end"]).max())
    moved = float(np.abs(reference["end"] - reference["start"]).max())
    allowed = EXACT if trial.spec.training.mixed_precision == "none" else ROUNDED * moved
    print(json.dumps({"trial": trial.name, "distance": distance, "moved": moved}), flush=True)  # noqa: T201
    # Not <=: NaN is no distance.
    if not distance < allowed:
        return f"Its weights are {distance:.1e} away from those of one device, which moved them by {moved:.1e}."
    return ""


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # TensorFlow's own teardown can wait for other processes for minutes.
    os._exit(code)
