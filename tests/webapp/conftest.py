"""An artifact store of one test, and no Redis: what would tell others fails softly, at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workers.contract.store import Store


@pytest.fixture
def store(tmp_path: Path, settings: Any) -> Store:
    settings.REDIS_URL = "unix:///nonexistent/redis.sock"
    settings.LOCKSTEP_STORE = str(tmp_path / "store")
    return Store(settings.LOCKSTEP_STORE)
