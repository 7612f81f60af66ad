"""A job's log: pages of lines by id, for the browser and for the command line."""

from __future__ import annotations

from webapp.jobs.models import Job
from webapp.live.messages import Line, LogsAnswer

MOST = 5_000


def lines(
    job: Job,
    *,
    process: str = "",
    stream: str = "",
    q: str = "",
    after: int | None = None,
    before: int | None = None,
    limit: int = 500,
) -> LogsAnswer:
    """At most `limit` lines, oldest first: those behind `after`, else those before `before`, else the newest ones.

    `q` is text that a line holds, in upper or lower case. `more` says that others match in the direction asked.
    """
    found = job.log_lines.all()
    if process:
        found = found.filter(process=process)
    if stream:
        found = found.filter(stream=stream)
    if q:
        found = found.filter(text__icontains=q)
    if before is not None:
        found = found.filter(pk__lt=before)
    if after is not None:
        found = found.filter(pk__gt=after)
    order = "id" if after is not None else "-id"
    rows = list(found.order_by(order).values("id", "process", "stream", "time", "text")[: limit + 1])
    more, rows = len(rows) > limit, rows[:limit]
    if after is None:
        rows.reverse()
    page = [Line.model_validate(row) for row in rows]
    return LogsAnswer(lines=page, first=page[0].id if page else None, last=page[-1].id if page else None, more=more)
