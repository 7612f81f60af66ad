"""Looks at an upload on this host: `python -m workers.host.inspecting ORDER`, in a session of its own.

Celery's task only starts it, since a build takes many seconds. The report goes into the artifact store, where the
control process looks for it; an order that comes twice is answered once.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from workers.contract.library import Inspection, Report, local_path, report_key
from workers.contract.store import Store
from workers.host.library import fetch
from workers.host.settings import ROOT, HostSettings
from workers.sandbox.inspecting import inspect

AT_ONCE = max(2, (os.cpu_count() or 2) // 4)
log = logging.getLogger(__name__)
_started: list[subprocess.Popen[bytes]] = []


def begin(settings: HostSettings, order: dict[str, Any]) -> None:
    """Start looking, detached. Raises pydantic.ValidationError for what is no order."""
    checked = Inspection.model_validate(order)
    _started[:] = [process for process in _started if process.poll() is None]
    settings.library.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(settings.library / "inspecting.log", "ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers.host.inspecting", checked.model_dump_json()],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    _started.append(process)


def answer(settings: HostSettings, order: Inspection) -> bool:
    """Leave the report in the store; False when somebody has, or is about to. Raises OSError."""
    store = Store(settings.lockstep_store)
    with open(settings.library / f".{order.upload}.lock", "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if store.has(report_key(order.upload)):
            return False
        with open(settings.library / f".look-{uuid.UUID(order.upload).int % AT_ONCE}.lock", "ab") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)  # the more look at once, the less memory the host has for its jobs
            report = _look(settings, store, order)
        with tempfile.TemporaryDirectory(prefix="lockstep-report-") as folder:
            written = Path(folder, "report.json")
            written.write_text(report.model_dump_json())
            store.put(written, report_key(order.upload))
    return True


def _look(settings: HostSettings, store: Store, order: Inspection) -> Report:
    known = local_path(settings.library, order.sha256, order.format).exists()
    try:
        path = fetch(store, order.sha256, order.format, settings.library)
    except OSError as error:
        return Report(host=settings.lockstep_host, refused=f"{settings.lockstep_host} could not fetch it: {error}")
    report = inspect(path, order).model_copy(update={"host": settings.lockstep_host})
    if report.refused and not known:
        path.unlink(missing_ok=True)
    return report


def main() -> int:
    """0 when there is an answer, ours or another's."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    order = Inspection.model_validate(json.loads(sys.argv[1]))
    answered = answer(HostSettings(), order)
    log.info("upload %s: %s", order.upload, "answered" if answered else "answered by another")
    return 0


if __name__ == "__main__":
    sys.exit(main())
