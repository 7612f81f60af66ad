"""A store and a home of their own for each test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def folders(settings: Any, tmp_path: Path) -> Path:
    """Submitting wakes the control process; without a Redis that fails softly, at once on a missing socket."""
    settings.REDIS_URL = "unix:///nonexistent/redis.sock"
    settings.LOCKSTEP_HOME = tmp_path
    settings.LOCKSTEP_STORE = str(tmp_path / "store")
    return tmp_path
