"""The verbs on jobs: create one, ask for its stop, its pause, a checkpoint of it, or that it goes on."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from webapp.jobs import notices, phases, resuming, transitions
from webapp.jobs.models import Job, State
from webapp.jobs.states import RESUMABLE
from webapp.teams.models import Team, User
from workers.contract.spec import JobSpec


def create(*, team: Team, owner: User, spec: JobSpec) -> Job:
    """Queue a job of a spec that has been checked, and wake the control process on commit.

    Raises SpecInvalid when the checkpoint that it goes on from has just been removed.
    """
    layout = spec.layout
    with transaction.atomic():
        checkpoint = resuming.locked(team, spec)
        begun = resuming.step_in(spec, checkpoint) if checkpoint and spec.kind == "train" else None
        job = Job.objects.create(
            team=team,
            owner=owner,
            name=spec.name,
            spec_json=spec.to_dict(),
            kind=spec.kind,
            dataset=spec.dataset.name,
            model=spec.model.name,
            strategy=spec.strategy.name,
            tags=f" {' '.join(spec.tags)} " if spec.tags else "",
            replicas=layout.replicas,
            processes_total=len(layout.processes),
            total_steps=spec.total_steps,
            steps_per_epoch=spec.steps_per_epoch,
            global_batch=spec.samples_per_step,
            resume_checkpoint=checkpoint,
            resume_step=begun,
            step=begun or 0,
        )
        notices.changed([job.pk])
        notices.wake_control()
    return job


def request_stop(*, job: Job, by: User | None) -> bool:
    """Ask for the end of `job`: at once while it is queued or paused, else its hosts are told.

    `by` is None for an operator on the command line. True when the job is now cancelled or stopping, also when it had
    been stopping before; False when it had already ended.
    """
    name = _name(by)
    with transaction.atomic():
        won = transitions.cancel_waiting(job.pk, by=name) or transitions.begin_stopping(job.pk, by=name)
        # A gang that is ended because one host failed is stopping already; then a stop adds nothing.
        stopping = won or Job.objects.on_hosts().filter(pk=job.pk).exists()
        if won:
            notices.changed([job.pk])
            notices.wake_control()
    return stopping


def request_pause(*, job: Job, by: User | None = None) -> bool:
    """Ask a job on its hosts to save a checkpoint and to give its devices back; False when it is at no such point."""
    with transaction.atomic():
        won = job.trains and transitions.begin_pausing(job.pk, by=_name(by))
        if won:
            notices.changed([job.pk])
            notices.wake_control()
    return won or Job.objects.filter(pk=job.pk, state__in=(State.PAUSING, State.PAUSED)).exists()


def request_save(*, job: Job) -> bool:
    """Ask a running job for a checkpoint soon; False when it does not run."""
    with transaction.atomic():
        won = job.trains and transitions.ask_to_save(job.pk, at=timezone.now())
        if won:
            notices.changed([job.pk])
            notices.wake_control()
    return won


def resume(*, job: Job, by: User | None = None) -> bool:
    """Queue a paused, failed or stopped job again, to go on from its newest stored checkpoint; False without one.

    Raises resuming.CannotResume when that one is torn.
    """
    if job.trains and job.state in RESUMABLE:
        resuming.set_aside_torn(job)
    with transaction.atomic():
        locked = Job.objects.select_for_update().get(pk=job.pk)
        checkpoint = resuming.newest(locked) if locked.trains else None
        won = checkpoint is not None and transitions.resume(
            job.pk,
            checkpoint,
            epoch=-(-checkpoint.step // locked.steps_per_epoch) if locked.steps_per_epoch else 0,
            earlier_seconds=phases.trained_seconds(locked) or 0.0,
            by=_name(by),
        )
        if won:
            notices.changed([job.pk])
            notices.wake_control()
    return won


def _name(user: User | None) -> str:
    return (user.get_full_name() or user.get_username())[:150] if user else "an operator"
