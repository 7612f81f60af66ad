"""The verbs on jobs: create one, ask for its stop."""

from __future__ import annotations

from django.db import transaction

from webapp.jobs import notices, transitions
from webapp.jobs.models import Job
from webapp.teams.models import Team, User
from workers.contract.spec import JobSpec


def create(*, team: Team, owner: User, spec: JobSpec) -> Job:
    """Queue a job of a spec that has been checked, and wake the control process on commit."""
    layout = spec.layout
    with transaction.atomic():
        job = Job.objects.create(
            team=team,
            owner=owner,
            name=spec.name,
            spec_json=spec.to_dict(),
            dataset=spec.dataset.name,
            model=spec.model.name,
            strategy=spec.strategy.name,
            tags=f" {' '.join(spec.tags)} " if spec.tags else "",
            replicas=layout.replicas,
            processes_total=len(layout.processes),
            total_steps=spec.total_steps,
            steps_per_epoch=spec.steps_per_epoch,
            global_batch=spec.samples_per_step,
        )
        notices.changed([job.pk])
        notices.wake_control()
    return job


def request_stop(*, job: Job, by: User | None) -> bool:
    """Ask for the end of `job`: at once while it is queued, else its hosts are told.

    `by` is None for an operator on the command line. True when the job is now cancelled or stopping, also when it had
    been stopping before; False when it had already ended.
    """
    name = _name(by)
    with transaction.atomic():
        won = transitions.cancel_queued(job.pk, by=name) or transitions.begin_stopping(job.pk, by=name)
        # A gang that is ended because one host failed is stopping already; then a stop adds nothing.
        stopping = won or Job.objects.on_hosts().filter(pk=job.pk).exists()
        if won:
            notices.changed([job.pk])
            notices.wake_control()
    return stopping


def _name(user: User | None) -> str:
    return (user.get_full_name() or user.get_username())[:150] if user else "an operator"
