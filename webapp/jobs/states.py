"""The states of a job, and which of them belong together."""

from __future__ import annotations

from django.db import models


class State(models.TextChoices):
    QUEUED = "queued", "Queued"
    STARTING = "starting", "Starting"
    RUNNING = "running", "Running"
    PAUSING = "pausing", "Pausing"
    PAUSED = "paused", "Paused"
    STOPPING = "stopping", "Stopping"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


ENDED = (State.SUCCEEDED, State.FAILED, State.CANCELLED)
ON_HOSTS = (State.STARTING, State.RUNNING, State.PAUSING, State.STOPPING)
ACTIVE = (State.QUEUED, *ON_HOSTS)
"""Waiting for devices or holding some. A paused job is neither active nor ended."""
RESUMABLE = (State.PAUSED, State.FAILED, State.CANCELLED)
"""From here a job goes on, when a checkpoint of it is stored."""
