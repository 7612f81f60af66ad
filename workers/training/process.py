"""One engine process: `python -m workers.training.process PLACE.json` runs its share of a job."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import cast

from workers.contract import catalog
from workers.contract.assignment import Place
from workers.contract.events import Failed
from workers.training.checkpointing import resuming
from workers.training.distribution import Distribution, connect
from workers.training.failures import explain, traceback_of
from workers.training.reporter import Reporter

ENDINGS = (signal.SIGTERM, signal.SIGINT)


def main(arguments: list[str]) -> int:
    """The exit code: 0 done, 1 failed (a Failed event says why), 2 called wrongly."""
    if len(arguments) != 1:
        print("usage: python -m workers.training.process PLACE.json", file=sys.stderr)  # noqa: T201
        return 2
    # Blocked here, before any other thread exists, so that only the watcher receives them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    place = Place.model_validate_json(Path(arguments[0]).read_bytes())
    reporter = Reporter(Path(place.run) / "events" / f"{place.process.name}.jsonl", place.process.name)
    threading.Thread(target=_end_on_signal, args=(reporter,), name="signals", daemon=True).start()
    try:
        _run(place, reporter)
    except BaseException as error:  # noqa: BLE001  whatever ends the process is told before it ends
        return _fail(error, place, reporter)
    reporter.close()
    return 0


def _run(place: Place, reporter: Reporter) -> None:
    if place.resume and not place.serves:
        reporter.phase("preparing", "Reading the checkpoint")
        resuming.check(place.spec, Path(place.resume))
    reporter.phase("importing", "Importing TensorFlow")
    strategy = catalog.find("strategy", place.spec.strategy.name).module
    if hasattr(strategy, "environment"):
        os.environ.update(strategy.environment(place.spec.options_of("strategy")))
    import_tensorflow()
    from workers.training import devices, shares
    from workers.training.servers import serving

    others = len(place.processes) - 1
    reporter.phase("connecting", f"Waiting for {others} other process{'es' * (others > 1)}" if others else "")
    devices.configure(place)
    if place.serves:
        serving.serve(place, reporter)
        return
    spread = connect(place)
    spread.watch(lambda error: os._exit(_fail(error, place, reporter)))
    reporter.phase("loading", f"Loading {place.spec.dataset.name}")
    loaded = shares.load(place)
    reporter.phase("building", f"Building {place.spec.model.name} on {place.replicas} replicas")
    share = shares.share_of(place, spread, loaded, reporter)
    share.build()
    share.run()
    reporter.flush()
    _leave_together(spread)


def import_tensorflow() -> None:
    """In half of the usual time: no garbage collection (all of it stays), no scikit-learn for Keras' wrappers."""
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    modules = cast(dict[str, object], sys.modules)
    modules.setdefault("sklearn", None)
    gc.disable()
    import keras  # noqa: F401
    import tensorflow  # noqa: F401

    gc.freeze()
    gc.enable()
    if modules["sklearn"] is None:
        del modules["sklearn"]


def _leave_together(spread: Distribution) -> None:
    """Nobody may vanish while another still waits for its last message; once all is done, a lost one is no fault."""
    import tensorflow as tf

    try:
        spread.meet()
    except tf.errors.OpError as error:
        print(f"another process left first: {error.message}", file=sys.stderr)  # noqa: T201


def _fail(error: BaseException, place: Place, reporter: Reporter) -> int:
    reason, cause = explain(error, place)
    text = traceback_of(error)
    print(text or cause, file=sys.stderr, flush=True)  # noqa: T201
    # A disk that took no events will not take this one; the log above has it.
    with suppress(OSError):
        reporter.write(Failed(time=time.time(), process=place.process.name, cause=cause, reason=reason, traceback=text))
    reporter.close()
    return 1


def _end_on_signal(reporter: Reporter) -> None:
    """SIGTERM must end a process that waits inside TensorFlow, where no Python signal handler would run."""
    number = signal.sigwait(ENDINGS)
    reporter.close(timeout=1.0)
    # TensorFlow's clustered strategies put a handler of their own here, and Python resets one in the main thread only.
    ctypes.CDLL(None).signal(int(number), 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # TensorFlow's own teardown can wait for other processes for minutes.
    os._exit(code)
