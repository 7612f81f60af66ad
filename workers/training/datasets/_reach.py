"""Whether a file's source can be reached from this machine, so that a job without its data is refused at submit."""

from __future__ import annotations

import os
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

PATIENCE = 4.0
"""Seconds; a name server that does not answer may hang far longer, so the question is asked in a thread of its own."""
REMEMBERED = 600.0

_answers: dict[str, tuple[float, str | None]] = {}


def offline() -> bool:
    """Whether this machine must not try the network (LOCKSTEP_OFFLINE=1)."""
    return os.environ.get("LOCKSTEP_OFFLINE", "").lower() in {"1", "true", "yes"}


def out_of_reach(url: str) -> str | None:
    """Why `url` cannot be fetched from here, as the end of a sentence about this host; None when it can.

    Asks the source's headers only, through the proxy of the environment if there is one, and remembers the answer for
    ten minutes.
    """
    if offline():
        return "works offline"
    known = _answers.get(url)
    if known is None or time.monotonic() - known[0] > REMEMBERED:
        known = _answers[url] = time.monotonic(), _ask(url)
    return known[1]


def _ask(url: str) -> str | None:
    host = urlsplit(url).hostname
    answer = [f"gets no answer from {host} within {PATIENCE:.0f} s"]

    def ask() -> None:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=PATIENCE):
                answer[0] = ""
        except (urllib.error.URLError, OSError, ValueError) as error:
            answer[0] = f"cannot reach {host} ({getattr(error, 'reason', None) or error})"

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE + 0.5)
    return answer[0] or None
