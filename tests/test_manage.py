"""The command line says what is wrong with its database in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("command", [("jobs",), ("show", "1")])
def test_it_names_the_remedy_before_the_first_migration(command: tuple[str, ...], tmp_path: Path) -> None:
    environment = {**os.environ, "HTTPS": "0", "LOCKSTEP_HOME": str(tmp_path), "DATABASE_URL": ""}
    manage = [sys.executable, "manage.py", *command]
    done = subprocess.run(manage, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("The database refused (no such table: jobs_job)")
    assert "manage.py migrate" in done.stderr and "Traceback" not in done.stderr
