"""Has a file looked at in the throw-away process, and says what came of it."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from workers.contract.library import Confinement, Inspection, Report
from workers.sandbox.confinement import LIMITS, Limits
from workers.sandbox.running import run


def inspect(path: Path, order: Inspection, *, limits: Limits = LIMITS, kind: Confinement | None = None) -> Report:
    """The report on a local file; whatever the process did, there is one."""
    arguments = ["-m", "workers.sandbox.build", str(path.resolve()), order.model_dump_json()]
    outcome = run(arguments, files=(path.resolve(),), limits=limits, kind=kind)
    try:
        report = Report() if outcome.fault else Report.model_validate_json(outcome.answer)
    except ValidationError:
        report = Report(refused="The process that opens the file ended without an answer.")
    refused = f"The process that opens the file {outcome.fault}." if outcome.fault else report.refused
    return report.model_copy(
        update={
            "refused": refused,
            "output": outcome.output.replace("\x00", ""),
            "confinement": outcome.confinement,
            "seconds": round(outcome.seconds, 2),
        }
    )
