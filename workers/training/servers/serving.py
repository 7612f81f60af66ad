"""The life of a process that a chief drives: it runs a TensorFlow server until the chief says that all is done.

The chief's graphs run in this process, so they can write files here: into the working folder, RUN/serving/<process>,
and that is how they tell the process how far the job is and when to leave.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from workers.contract.assignment import Place
from workers.contract.kinds import WORK
from workers.training.gauges import Gauges
from workers.training.reporter import Reporter, Values

FOLDER = "serving"
INDEX = "index"
"""File with this task's number, which graphs read to learn where they run."""
STEP = "step"
"""File that the chief's graphs write: the newest step that was begun here."""
DONE = "done"
"""File that the chief writes last."""
LOOK_SECONDS = 0.1


def serve(place: Place, reporter: Reporter) -> None:
    """Return when the chief is done. Raises OSError or a TensorFlow error when the server cannot start."""
    import tensorflow as tf

    home = _home(place)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    process = place.process
    # Held until the end: a server that is collected stops listening.
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=process.role, task_index=process.index)
    reporter.phase("connecting", "Waiting for the chief")
    gauges = Gauges(process, reporter)
    newest = _wait_for_chief(home)
    if newest is not None:
        gauges.start()
        taken = "steps" if place.spec.kind == "train" else "examples"
        reporter.phase(WORK[place.spec.kind], f"Takes {taken} for the chief" if process.replicas else "Keeps variables")
        _follow(home, newest, place, reporter)
        gauges.stop()
    del server


def _home(place: Place) -> Path:
    home = Path(place.run) / FOLDER / place.process.name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / INDEX).write_text(str(place.process.index))
    os.chdir(home)
    return home


def _wait_for_chief(home: Path) -> int | None:
    """The first step that was told, None when the chief left without any."""
    while not (home / DONE).exists():
        step = _step(home)
        if step is not None:
            return step
        time.sleep(LOOK_SECONDS)
    return None


def _follow(home: Path, newest: int, place: Place, reporter: Reporter) -> None:
    steps_per_epoch = max(1, place.spec.steps_per_epoch)
    while not (home / DONE).exists():
        # A step that another worker left undone comes back with its old number; points must never go back.
        newest = max(newest, _step(home) or 0)
        reporter.write(Values(newest, max(1, -(-newest // steps_per_epoch)), time.time(), {}))
        time.sleep(LOOK_SECONDS)


def _step(home: Path) -> int | None:
    """None while there is no number, or only the beginning of writing one."""
    try:
        return int((home / STEP).read_text())
    except (FileNotFoundError, ValueError):
        return None
