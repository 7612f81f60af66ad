from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from webapp.teams import checks

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("url", ["redis://h:6379/0", "rediss://h/1", "unix:///run/r.sock?db=0"])
def test_it_accepts_each_kind_of_redis_address(settings: Any, url: str) -> None:
    settings.REDIS_URL = url
    assert checks.check_redis_url() == []


@pytest.mark.parametrize("url", ["http://h:6379", "localhost:6379", ""])
def test_it_refuses_other_redis_addresses_with_a_hint(settings: Any, url: str) -> None:
    settings.REDIS_URL = url
    [error] = checks.check_redis_url()
    assert error.id == "lockstep.E001" and "redis://" in str(error.hint)


def check_deploy(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    environment = {**kept, "LOCKSTEP_HOME": str(tmp_path), **environment}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_it_is_clean_for_a_production_environment(tmp_path: Path) -> None:
    key = "k3Jd82-ksl29fk_sl20fkqpz7Yb5nWm1xCv4tRe6uHo8iPa0-longer"
    done = check_deploy(tmp_path, HTTPS="1", SECRET_KEY=key)
    assert done.returncode == 0, done.stderr


def test_it_wants_the_secret_key_from_the_environment_in_production(tmp_path: Path) -> None:
    done = check_deploy(tmp_path, HTTPS="1")
    assert done.returncode == 1
    assert "lockstep.E002" in done.stderr and "HINT" in done.stderr
