"""`manage.py pause JOB`: ask for a checkpoint and for the devices of a job."""

from __future__ import annotations

from webapp.jobs import services
from webapp.jobs.models import Job
from webapp.jobs.terminal import Verb
from webapp.teams.models import User


class Command(Verb):
    help = "Pause a job: it saves a checkpoint and gives its devices back; `resume` lets it go on."

    def ask(self, job: Job, by: User | None) -> bool:
        return services.request_pause(job=job, by=by)

    def too_late(self, job: Job) -> str:
        return f"({job.state}) does not run, so there is nothing to pause."
