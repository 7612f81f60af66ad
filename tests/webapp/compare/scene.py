"""Jobs with curves, as the compare tests need them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.utils import timezone

from webapp.jobs.models import Job, State
from webapp.metrics import store
from webapp.teams.models import Team, User


def make_job(team: Team, owner: User, spec: dict[str, Any], *, state: State = State.SUCCEEDED, **changes: Any) -> Job:
    """A job that trained for one minute; `changes` are dotted spec fields with `__`: `training__seed=2`."""
    document = copy.deepcopy(spec)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = document
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    now = timezone.now()
    return Job.objects.create(
        team=team, owner=owner, name=document["name"], spec_json=document, dataset="digits", model="mlp",
        strategy="multi_worker_mirrored", replicas=2, total_steps=100, steps_per_epoch=10,
        global_batch=document["training"]["global_batch"], state=state, step=100,
        started=now - timedelta(seconds=70), first_step=now - timedelta(seconds=60), ended=now,
    )  # fmt: skip


def draw(job: Job, name: str, values: Sequence[float], *, seconds: float = 1.0) -> None:
    """Appends `values` at the steps 1, 2, ..., `seconds` apart from the job's first step on."""
    assert job.first_step is not None
    steps = list(range(1, len(values) + 1))
    times = [job.first_step.timestamp() + seconds * step for step in steps]
    store.append([store.batch(owner=job.pk, name=name, steps=steps, times=times, values=list(values))])
