"""A job's phase in words, and when it will be done: all out of its row, so that a list asks nothing more."""

from __future__ import annotations

import math

from django.utils import timezone

from webapp.jobs.models import Job
from webapp.jobs.states import State

SETTLED_SECONDS = 5.0
SENTENCES = {
    "preparing": "preparing",
    "importing": "importing TensorFlow",
    "connecting": "connecting the processes",
    "loading": "loading the data",
    "building": "building the model",
    "compiling": "compiling the first step",
}


def phase_text(job: Job) -> str:
    """What a person would answer when asked what the job is doing."""
    match job.state:
        case State.QUEUED:
            return _queued(job)
        case State.STARTING:
            return _starting(job)
        case State.RUNNING:
            return _starting(job) if job.processes_up < job.processes_total else _running(job)
        case State.PAUSING | State.STOPPING:
            return _leaving(job)
        case _:
            return f"paused at {position(job)}" if job.state == State.PAUSED else _ended(job)


def position(job: Job) -> str:
    """`step 1,240 of 6,000`"""
    return f"step {job.step:,} of {max(job.total_steps, job.step):,}"


def progress(job: Job) -> float:
    """The part of its steps that is done, 0 to 1."""
    if job.state == State.SUCCEEDED:
        return 1.0
    return min(1.0, job.step / job.total_steps) if job.total_steps else 0.0


def eta_seconds(job: Job) -> float | None:
    """Seconds until the last step at the pace of the whole run, evaluations included; None without a pace to go by."""
    if job.state != State.RUNNING or not job.step:
        return None
    pace = _mean_pace(job) or step_seconds(job)
    return max(0, job.total_steps - job.step) * pace if pace is not None else None


def _mean_pace(job: Job) -> float | None:
    """The newest step time alone makes a nervous clock; the first seconds alone say too little."""
    first, steps = job.attempt_first_step, job.step - (job.resume_step or 0)
    taken = (timezone.now() - first).total_seconds() if first else 0.0
    return taken / steps if taken > SETTLED_SECONDS and steps > 0 else None


def trained_seconds(job: Job) -> float | None:
    """How long it has trained: each attempt from its first step on, pauses left out. None before the first step."""
    if job.attempt_first_step is None:
        return job.earlier_seconds or None
    until = job.ended or job.paused or timezone.now()
    return job.earlier_seconds + max(0.0, (until - job.attempt_first_step).total_seconds())


def step_seconds(job: Job) -> float | None:
    """Seconds one step takes now: as reported, else out of the throughput."""
    reported = _positive(job.latest.get("step_time"))
    if reported is not None:
        return reported
    throughput = _positive(job.latest.get("throughput"))
    return job.global_batch / throughput if throughput is not None else None


def _queued(job: Job) -> str:
    words = "queued" if job.resume_step is None else f"queued (resumes from step {job.resume_step:,})"
    return f"{words}: {job.reason}" if job.reason else words


def _leaving(job: Job) -> str:
    if job.state == State.PAUSING:
        return f"pausing: saving a checkpoint after step {job.step:,}" if job.step else "pausing"
    return "stopping" if job.stop_requested else "stopping: one host has failed, ending the others"


def _starting(job: Job) -> str:
    return f"starting: {job.processes_up} of {_count(job.processes_total, 'process', 'processes')} up"


def _ended(job: Job) -> str:
    if not job.trains:
        return _put_to_use(job)
    if job.state == State.SUCCEEDED:
        # Fewer steps than planned: the engine's last word was why.
        early = f": {_within_a_sentence(job.phase_detail)}" if job.step < job.total_steps and job.phase_detail else ""
        return f"finished {_count(job.step, 'step')}{early}"
    verb = "failed" if job.state == State.FAILED else "stopped"
    return f"{verb} at {position(job)}" if job.step else f"{verb} before its first step"


def _put_to_use(job: Job) -> str:
    """The end of a job that took no steps."""
    if job.state != State.SUCCEEDED:
        return "failed before it was done" if job.state == State.FAILED else "stopped before it was done"
    match job.kind:
        case "predict":
            # The last word was `359 of 359 examples`.
            return f"predicted {job.phase_detail.rpartition(' of ')[2]}".rstrip()
        case "export":
            return f"exported {job.phase_detail}".rstrip()
        case _:
            return "evaluated"


def _running(job: Job) -> str:
    match job.phase:
        case "training":
            return position(job) if job.step else "taking the first step"
        case "evaluating":
            return f"evaluating {_within_a_sentence(job.phase_detail) or 'after ' + position(job)}"
        case "predicting":
            return f"predicting {job.phase_detail}".rstrip()
        case "saving":
            return f"saving {job.phase_detail or 'the model'}"
        case phase:
            return _within_a_sentence(job.phase_detail) or SENTENCES.get(phase, "starting")


def _within_a_sentence(text: str) -> str:
    """The engine's detail begins with a capital; a name in capitals (XLA) keeps them."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _positive(value: object) -> float | None:
    if isinstance(value, int | float) and math.isfinite(value) and value > 0:
        return float(value)
    return None
