"""The states of a job, and which of them belong together."""

from __future__ import annotations

from django.db import models


class State(models.TextChoices):
    QUEUED = "queued", "Queued"
    STARTING = "starting", "Starting"
    RUNNING = "running", "Running"
    STOPPING = "stopping", "Stopping"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


ENDED = (State.SUCCEEDED, State.FAILED, State.CANCELLED)
ON_HOSTS = (State.STARTING, State.RUNNING, State.STOPPING)
ACTIVE = (State.QUEUED, *ON_HOSTS)
