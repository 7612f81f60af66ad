"""What a job may go on from: its own newest checkpoint, or one of an earlier job of the same team."""

from __future__ import annotations

from typing import Any

from webapp.jobs import notices, soundness
from webapp.jobs.models import Checkpoint, Job
from webapp.teams.models import Team
from workers.contract.catalog import Kind
from workers.contract.kinds import fitting, lacks_weights
from workers.contract.problems import Problem, SpecInvalid
from workers.contract.spec import JobSpec

NO_OTHER = "No other checkpoint of it is in the artifact store, so it cannot go on."
SAME: tuple[Kind, ...] = ("model", "dataset")


def newest(job: Job) -> Checkpoint | None:
    """What `job` itself would go on from: its newest stored checkpoint, else the one that it began with."""
    own = job.checkpoints.in_store().newest_first().first()
    begun = job.resume_checkpoint
    return own or (begun if begun is not None and begun.stored is not None else None)


class CannotResume(Exception):
    """A job's newest checkpoint cannot be gone on from; the message names it, says why and what there is instead."""


def set_aside_torn(job: Job) -> None:
    """Pass over what the store holds of `job` in pieces, from the newest on.

    Raises CannotResume when there was any: whoever asked meant that one, and is offered the newest whole one.
    """
    torn = []
    while (checkpoint := newest(job)) is not None and (fault := soundness.fault(checkpoint, every_byte=True)):
        torn.append(f"{checkpoint.name} {fault}.")
        Checkpoint.objects.filter(pk=checkpoint.pk).update(
            stored=None, problem=f"In the artifact store it {fault}."[:1000]
        )
        job.refresh_from_db(fields=["resume_checkpoint"])
    if torn:
        rest = (
            f"The newest whole one is {checkpoint.name}: resume again to go on from there." if checkpoint else NO_OTHER
        )
        notices.changed([job.pk])
        raise CannotResume(" ".join([*torn, rest]))


def recent(team: Team, most: int = 6) -> list[Checkpoint]:
    """The newest stored checkpoint of each of the jobs that wrote one last."""
    stored = Checkpoint.objects.in_store().filter(job__team=team).select_related("job").order_by("-pk")
    newest_of: dict[int, Checkpoint] = {}
    for each in stored[: most * 8]:
        newest_of.setdefault(each.job_id, each)
    return list(newest_of.values())[:most]


def locked(team: Team, spec: JobSpec) -> Checkpoint | None:
    """The checkpoint that `spec` names, locked against its removal until the caller's transaction ends.

    Raises SpecInvalid when it is not there (any more).
    """
    if spec.resume is None:
        return None
    named = Checkpoint.objects.in_store().filter(job__team=team, job=spec.resume.job, name=spec.resume.checkpoint)
    found = named.select_for_update(of=("self",)).newest_first().first()
    if found is None:
        raise SpecInvalid(problems(team, spec))
    return found


def problems(team: Team, spec: JobSpec) -> list[Problem]:
    """Why `spec` cannot go on from the checkpoint that it names; each problem offers the newest one that would do."""
    if spec.resume is None:
        return _missing(team, spec) if lacks_weights(spec) else []
    job = Job.objects.of_team(team).filter(pk=spec.resume.job).first()
    if job is None:
        return [Problem("resume.job", f"is not a job of {team}", spec.resume.job, offer(team, spec))]
    stored = job.checkpoints.in_store().filter(name=spec.resume.checkpoint).newest_first().first()
    if stored is None:
        message = f"{spec.resume.checkpoint} of job {job.pk} is not in the artifact store"
        return [Problem("resume.checkpoint", message, None, offer(team, spec, job))]
    fault = soundness.fault(stored)
    if fault:
        message = f"{spec.resume.checkpoint} of job {job.pk} {fault}"
        return [Problem("resume.checkpoint", message, None, offer(team, spec, job))]
    return _misfits(job, spec, team) or (_length(stored, spec) if spec.kind == "train" else [])


def offer(team: Team, spec: JobSpec, first: Job | None = None) -> str:
    """The newest checkpoint that `spec` could go on from, in words; one of the job `first` where that has any."""
    stored = Checkpoint.objects.in_store().filter(job__team=team).select_related("job")
    own = list(stored.filter(job=first).newest_first()[:50]) if first else []
    others = stored.filter(job__model=spec.model.name).order_by("-pk")
    if spec.kind == "train":
        others = others.filter(job__dataset=spec.dataset.name)
    for each in (*own, *others[:50]):
        if not _misfits(each.job, spec, team, offering=False) and not soundness.fault(each):
            return f"The newest that fits is {each.name} of job {each.job_id}"
    nothing = "no stored checkpoint fits this model and dataset"
    return f"Leave it out: {nothing}" if spec.kind == "train" else f"Train one first: {nothing}"


def _missing(team: Team, spec: JobSpec) -> list[Problem]:
    message = f"is missing, and a job to {spec.kind} needs the weights of a checkpoint"
    return [Problem("resume", message, None, offer(team, spec))]


def _misfits(job: Job, spec: JobSpec, team: Team, *, offering: bool = True) -> list[Problem]:
    """To go on, model, dataset and optimizer have to be the earlier job's; to use its weights, the model alone."""
    if spec.kind == "train":
        return _differences(job, spec, team, SAME, offering=offering) + _optimizer(job, spec)
    found = _differences(job, spec, team, SAME[:1], offering=offering)
    before, now = fitting(job.spec), fitting(spec)
    if not found and before != now:
        message = f"is {now}, and job {job.pk}'s model was trained on {before}"
        remedy = f"Choose data of that kind. {offer(team, spec)}" if offering else ""
        found = [Problem("dataset.name", message, spec.dataset.name, remedy)]
    return found


def _differences(
    job: Job, spec: JobSpec, team: Team, kinds: tuple[Kind, ...], *, offering: bool = True
) -> list[Problem]:
    """Weights and their optimizer fit no other model, and a position in the data no other dataset."""
    earlier = job.spec
    found = []
    for kind in kinds:
        mine, its = _chosen(spec, kind), _chosen(earlier, kind)
        for key in sorted(mine.keys() | its.keys()):
            if mine.get(key) != its.get(key):
                message = f"differs from job {job.pk}'s, whose checkpoint it would go on from ({_said(its.get(key))})"
                remedy = f"Use {_said(its.get(key))}. {offer(team, spec)}" if offering else ""
                found.append(Problem(f"{kind}.{key}", message, mine.get(key), remedy))
    return found


def _chosen(spec: JobSpec, kind: Kind) -> dict[str, Any]:
    """Name and options with their defaults written out: `{"name": "mlp", "options.units": [64]}`."""
    options = spec.options_of(kind).model_dump(mode="json")
    return {"name": getattr(spec, kind).name, **{f"options.{key}": value for key, value in options.items()}}


def _said(value: Any) -> str:
    return "not set" if value is None else str(value)


def step_in(spec: JobSpec, checkpoint: Checkpoint) -> int:
    """Steps of `spec` that are done, as the engine counts them: its own step may see more or fewer examples."""
    return checkpoint.samples_seen // spec.samples_per_step if checkpoint.samples_seen else checkpoint.step


def _length(stored: Checkpoint, spec: JobSpec) -> list[Problem]:
    """Steps and epochs count from the very first one on."""
    done = step_in(spec, stored)
    if done < spec.total_steps:
        return []
    key = "epochs" if spec.training.steps is None else "steps"
    message = f"are done already: {stored.name} of job {stored.job_id} stands at step {done:,} of {spec.total_steps:,}"
    return [Problem(f"training.{key}", message, getattr(spec.training, key), "Ask for more")]


def _optimizer(job: Job, spec: JobSpec) -> list[Problem]:
    """Its slots belong to the weights; another one's do not fit."""
    its, mine = job.spec.training.optimizer.name, spec.training.optimizer.name
    if its == mine:
        return []
    message = f"differs from job {job.pk}'s, whose checkpoint it would go on from ({its})"
    return [Problem("training.optimizer.name", message, mine, f"Use {its}")]
