"""The tasks of a training host. Each may come twice, late, or in the wrong order."""

from __future__ import annotations

import logging
from typing import Any

from workers.celery import app
from workers.host import inspecting, launching
from workers.host.refusing import refuse
from workers.host.settings import HostSettings

log = logging.getLogger(__name__)


@app.task(name="workers.tasks.launch")  # type: ignore[untyped-decorator]
def launch(assignment: dict[str, Any]) -> None:
    """Start the attempt's supervisor here; does nothing when it runs or has ended.

    A folder that cannot be written ends the attempt. Raises ValueError when the assignment names no attempt.
    """
    settings = HostSettings()
    try:
        launching.launch(settings.lockstep_runs, assignment)
    except OSError as error:
        log.error("attempt %s cannot start: %s", assignment["attempt"], error)
        refuse(settings, assignment["attempt"], error)


@app.task(name="workers.tasks.stop")  # type: ignore[untyped-decorator]
def stop(attempt: int) -> None:
    """Leave the stop mark, which the supervisor heeds at once and a later one before it starts anything.

    Raises ValueError when `attempt` is no number of an attempt.
    """
    launching.stop(HostSettings().lockstep_runs, attempt)


@app.task(name="workers.tasks.store")  # type: ignore[untyped-decorator]
def store(attempt: int) -> None:
    """Put into the artifact store what it could not take when the attempt ended; does nothing where all is stored.

    Raises ValueError when `attempt` is no number of an attempt.
    """
    launching.store(HostSettings().lockstep_runs, attempt)


@app.task(name="workers.tasks.inspect")  # type: ignore[untyped-decorator]
def inspect(order: dict[str, Any]) -> None:
    """Have an uploaded file looked at in a throw-away process; the report goes into the artifact store.

    Raises pydantic.ValidationError for what is no order.
    """
    inspecting.begin(HostSettings(), order)
