"""Removes from the artifact store what gave way to newer checkpoints, as soon as nobody waits to go on from it."""

from __future__ import annotations

import logging
import time

from django.db.models import Exists, OuterRef, Q

from webapp.jobs import notices
from webapp.jobs.models import Checkpoint, Job
from webapp.jobs.store import store

LOOK_SECONDS = 5.0
MOST = 20
"""Removed at one look, so that the control process comes back to its other duties."""

log = logging.getLogger(__name__)


class Retention:
    """One look every few seconds."""

    def __init__(self) -> None:
        self._due = 0.0

    def tend(self) -> None:
        """What is due, now and then."""
        if time.monotonic() >= self._due:
            # A job that is ever at its best writes checkpoints faster than a look every few seconds removes them.
            more = len(tidy()) == MOST
            self._due = time.monotonic() + (0.0 if more else LOOK_SECONDS)


def tidy() -> list[int]:
    """Remove the files of dropped checkpoints; the ids of those removed.

    One stays while a job that has not ended is to go on from it, and while no newer one of its job is stored.
    """
    waiting = Job.objects.unfinished().filter(resume_checkpoint=OuterRef("pk"))
    beyond = Q(attempt__gt=OuterRef("attempt")) | Q(attempt=OuterRef("attempt"), step__gt=OuterRef("step"))
    newer = Checkpoint.objects.in_store().filter(beyond, job=OuterRef("job"), dropped__isnull=True)
    due = Checkpoint.objects.in_store().filter(Exists(newer), ~Exists(waiting), dropped__isnull=False)
    removed = []
    for checkpoint in due.order_by("pk")[:MOST]:
        # First the row: who is submitted from now on finds that it is gone.
        if due.filter(pk=checkpoint.pk).update(stored=None):
            _remove(checkpoint)
            removed.append(checkpoint.pk)
            notices.changed([checkpoint.job_id])
    return removed


def _remove(checkpoint: Checkpoint) -> None:
    try:
        store().remove(checkpoint.key)
    except (OSError, ValueError) as error:
        Checkpoint.objects.filter(pk=checkpoint.pk).update(stored=checkpoint.stored)
        log.warning("%s stays in the artifact store: %s", checkpoint, error)
