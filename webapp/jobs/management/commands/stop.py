"""`manage.py stop JOB`: ask for a job's end."""

from __future__ import annotations

from webapp.jobs import services
from webapp.jobs.models import Job
from webapp.jobs.terminal import Verb
from webapp.teams.models import User


class Command(Verb):
    help = "Stop a job. A queued or paused one is cancelled at once; a running one ends within seconds."

    def ask(self, job: Job, by: User | None) -> bool:
        return services.request_stop(job=job, by=by)

    def too_late(self, job: Job) -> str:
        return f"has ended already ({job.state}); there is nothing to stop."
