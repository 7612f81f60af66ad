"""The supervisor's wait for what its attempt needs out of the artifact store."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from workers.host.runs import RunFolder
from workers.host.settings import ROOT
from workers.host.verdict import Verdict, cut

LOOK_SECONDS = 0.1


def fetch(run: RunFolder, attend: Callable[[], Verdict | None]) -> Verdict | None:
    """Bring it here; the verdict when something cannot be had, or the one that `attend` gives meanwhile.

    `attend` is called several times a second.
    """
    command = [sys.executable, "-m", "workers.host.fetching", str(run.path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            reason = attend()
            if reason is not None:
                process.kill()
                return reason
            time.sleep(LOOK_SECONDS)
        words = process.communicate()[1].strip().rpartition("\n")[2]
    if process.returncode == 0:
        return None
    return Verdict("failed", cut(words or "What the job needs could not be fetched from the artifact store.", 900))
