"""`manage.py resume JOB`: queue a job again that has a checkpoint."""

from __future__ import annotations

from django.core.management.base import CommandError

from webapp.jobs import services
from webapp.jobs.models import Job
from webapp.jobs.resuming import CannotResume
from webapp.jobs.terminal import Verb
from webapp.teams.models import User


class Command(Verb):
    help = "Let a paused, failed or stopped job go on from its newest checkpoint."

    def ask(self, job: Job, by: User | None) -> bool:
        try:
            return services.resume(job=job, by=by)
        except CannotResume as error:
            raise CommandError(f"job: {job.pk}: {error}") from None

    def too_late(self, job: Job) -> str:
        return f"({job.state}) cannot go on: it has not ended, or the store holds no checkpoint of it."
