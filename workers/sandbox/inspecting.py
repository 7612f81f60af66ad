"""Has a file looked at in the throw-away process, and says what came of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from pydantic import ValidationError

from workers.contract.library import Confinement, Inspection, Report, check_seconds
from workers.sandbox.confinement import LIMITS, Limits, confinement
from workers.sandbox.running import run

NOT_HELD = (
    "A program may not be tried here: this training host allows neither bubblewrap nor namespaces nor Landlock, so "
    "nothing would keep it from the host's files and secrets. Ask whoever runs the host to allow one of them."
)
REMEDY = "Make it smaller, or mend what takes so long; then upload it again."


def inspect(path: Path, order: Inspection, *, limits: Limits | None = None, kind: Confinement | None = None) -> Report:
    """The report on a local file; whatever the process did, there is one."""
    arguments = ["-m", "workers.sandbox.build", str(path.resolve()), order.model_dump_json()]
    kind = kind or confinement()
    if kind == "limits" and order.format == "python_module":
        return Report(confinement=kind, refused=NOT_HELD)
    seconds = check_seconds(path.stat().st_size)
    limits = limits or dataclasses.replace(LIMITS, cpu_seconds=seconds, wall_seconds=float(seconds))
    outcome = run(arguments, files=(path.resolve(),), limits=limits, kind=kind)
    try:
        report = Report() if outcome.fault else Report.model_validate_json(outcome.answer)
    except ValidationError:
        report = Report(refused="The process that opens the file ended without an answer. Does it end itself?")
    refused = f"The process that opens the file {outcome.fault}. {REMEDY}" if outcome.fault else report.refused
    return report.model_copy(
        update={
            "refused": refused,
            "output": outcome.output.replace("\x00", ""),
            "confinement": outcome.confinement,
            "seconds": round(outcome.seconds, 2),
        }
    )
