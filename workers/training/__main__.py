"""A job by hand: `python -m workers.training SPEC.yaml --out DIR`, with no server, no Redis and no database.

Events go to stdout as JSON lines and to DIR/events.jsonl, the model to DIR/model.keras, words for people to stderr.
While it runs, `touch DIR/pause` saves a checkpoint and ends the job, `touch DIR/checkpoint-now` only saves one.
Exit codes: 0 succeeded, 1 failed, 2 the spec, the checkpoint or the folder was refused, 3 paused, 130 interrupted.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

from workers.contract.document import read
from workers.contract.kinds import PREDICTIONS, lacks_weights
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import JobSpec, parse
from workers.gang import Gang, NoFreePort, ProcessExit
from workers.training import files_here
from workers.training.checkpointing import checkpoints, initial_model, resuming
from workers.training.checkpointing.keeping import NOW, PAUSE, PAUSED
from workers.training.following import Followed, log_tail
from workers.training.here import HOST, place_here

LEFT_BY_A_RUN = (
    "events", "logs", "places", "events.jsonl", "model.keras", "saved_model.zip", PREDICTIONS, "serving",
    checkpoints.FOLDER, PAUSE, PAUSED, NOW,
)  # fmt: skip
RESUME_HELP = (
    "go on from this one of an earlier run (DIR/checkpoints/step-50), under whatever strategy SPEC has now; or, given "
    "DIR, from the newest there that fits. training.steps and epochs count from the start of the earlier run. To go on "
    "in the same folder give it as --out with --overwrite: its checkpoints up to that one are kept"
)
GRACE_SECONDS = 2.0


class _EarlierRun(Exception):
    """Nothing is overwritten unasked."""


def main(arguments: list[str] | None = None) -> int:
    """The exit code, see the module."""
    parser = argparse.ArgumentParser(prog="python -m workers.training", description="Run a training job by hand.")
    parser.add_argument("spec", type=Path, help="a lockstep/v1 document, YAML or JSON")
    parser.add_argument("--out", type=Path, required=True, help="folder for events.jsonl, model.keras and logs")
    parser.add_argument("--overwrite", action="store_true", help="delete what an earlier run left in the folder")
    parser.add_argument("--resume", type=Path, metavar="CHECKPOINT", help=RESUME_HELP)
    chosen = parser.parse_args(arguments)
    try:
        spec = parse(files_here.resolve(read(chosen.spec.read_bytes())))
        processes = place_here(spec)
        resume = None if chosen.resume is None else resuming.choose(chosen.resume, spec)
        if resume is None:
            spec = initial_model.resolve(spec)
            _refuse_other_jobs(spec)
            _refuse_without_weights(spec)
    except OSError as error:
        return _say(2, f"{chosen.spec} cannot be read: {error.strerror}")
    except SpecInvalid as error:
        return _say(2, f"{chosen.spec} is refused:", *(f"  {problem}" for problem in error.problems))
    try:
        followed = _prepare(chosen.out, resume, overwrite=chosen.overwrite)
    except _EarlierRun as error:
        return _say(2, str(error))
    except OSError as error:
        return _say(2, f"{chosen.out} cannot be written: {error.strerror}")
    return _run(spec, Gang(chosen.out, spec, processes, HOST, GRACE_SECONDS, resume=resume), followed, chosen.out)


def _refuse_other_jobs(spec: JobSpec) -> None:
    """Raises SpecInvalid when it names a job's checkpoint, which only a server can find."""
    if spec.resume is not None:
        message, value = "names a checkpoint of a server's job", f"{spec.resume.checkpoint} of job {spec.resume.job}"
        raise SpecInvalid([Problem("resume", message, value, "Give its folder with --resume")])


def _refuse_without_weights(spec: JobSpec) -> None:
    """Raises SpecInvalid when it is to use weights, and names none."""
    if lacks_weights(spec):
        message = f"is missing, and a job to {spec.kind} needs the weights of one"
        raise SpecInvalid([Problem(resuming.OPTION, message, None, "Give a checkpoint, or training.initial_model")])


def _prepare(out: Path, resume: Path | None, *, overwrite: bool) -> Followed:
    """The folder, empty of earlier runs and taken. Raises _EarlierRun, or OSError when it cannot be written."""
    present = [out / name for name in LEFT_BY_A_RUN if (out / name).exists()]
    if present and not overwrite:
        raise _EarlierRun(f"{out} holds an earlier run ({present[0].name}). Choose another folder or add --overwrite")
    kept = out / checkpoints.FOLDER
    if resume is not None and resume.resolve().parent == kept.resolve():
        present.remove(kept)
        # Those beyond it belong to a way that is not gone any more.
        present += [path for path in checkpoints.among(kept) if checkpoints.step_of(path) > checkpoints.step_of(resume)]
    for path in present:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    out.mkdir(parents=True, exist_ok=True)
    return Followed(out, sys.stdout.buffer)


def _run(spec: JobSpec, gang: Gang, followed: Followed, out: Path) -> int:
    began = time.monotonic()
    failed: ProcessExit | None = None
    # Asked for by a flag: an exception may be raised where Python can only ignore it (a finalizer), and be lost.
    interrupted = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: interrupted.set())
    try:
        gang.start()
        while gang.running and failed is None and not interrupted.is_set():
            ends = [end for end in gang.poll(timeout=0.05) if not end.succeeded]
            followed.look()
            failed = next((end for end in ends if not _outlived(end, gang, followed)), None)
        gang.stop()
        followed.look()
    except BrokenPipeError:
        gang.stop()
        return _say(1, "nobody reads the events any more; every process has ended")
    except (OSError, NoFreePort) as error:
        gang.stop()
        return _say(1, f"the processes could not be started: {error}")
    finally:
        followed.close()
    if interrupted.is_set() and followed.finished is None:
        return _say(130, "interrupted; every process has ended")
    if failed is None and (out / PAUSED).exists():
        newest = next(iter(checkpoints.among(out / checkpoints.FOLDER)))
        return _say(3, f"{spec.name}: paused; go on with --resume {newest}")
    if failed is not None or followed.finished is None:
        return _explain(failed, followed, out)
    metrics = ", ".join(f"{name} {value:.4g}" for name, value in followed.finished.metrics.items())
    seconds = time.monotonic() - began
    what = f"{followed.finished.step:,} steps" if spec.kind == "train" else f"{spec.kind} done"
    done = f"{spec.name}: {what} in {seconds:.1f} s{', ' if metrics else ''}{metrics}"
    return _say(0, done, *followed.artifacts)


def _outlived(end: ProcessExit, gang: Gang, followed: Followed) -> bool:
    """Whether the job goes on without that process; then says so."""
    spare = {process.name for process in gang.processes if not process.essential}
    if end.name not in spare & followed.at_work:
        return False
    how = f"was ended by {end.signal}" if end.signal else f"ended with code {end.code}"
    _say(0, f"{end.name} {how}; the job goes on without it")
    return True


def _explain(failed: ProcessExit | None, followed: Followed, out: Path) -> int:
    """A process that only lost another one is not the culprit when that other one said what happened to it."""
    culprit = failed.name if failed else next(iter(followed.failures), "")
    told = followed.failures.get(culprit)
    if told is None or told.reason == "peer":
        told = next((event for event in followed.failures.values() if event.reason != "peer"), told)
    if told is not None:
        culprit, cause = told.process, told.cause
    elif failed is None:
        cause = "every process ended without an error, and none said that the job is done"
    elif failed.signal:
        memory = "; the system may have run out of memory" if failed.signal == "SIGKILL" else ""
        cause = f"{failed.name} was ended by {failed.signal}{memory}"
    else:
        cause = f"{failed.name} ended with code {failed.code}"
    tail = log_tail(out, culprit) if culprit else ""
    return _say(1, f"failed in {culprit or 'the gang'}: {cause}", *([f"the end of its log:\n{tail}"] if tail else []))


def _say(code: int, *lines: str) -> int:
    print(*lines, sep="\n", file=sys.stderr)  # noqa: T201
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(_say(130, "interrupted before anything was started"))
