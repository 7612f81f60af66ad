"""A database and processes of their own, as in production, for tests that kill them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]

SEED = """
from tests.webapp.jobs.scene import launch, queue
from webapp.teams.models import Membership, Team, User
import yaml
team = Team.objects.create(slug="vision", name="Vision")
users = {name: User.objects.create_user(name, f"{name}@example.org", "pw") for name in ("alice", "charlie")}
Membership.objects.create(team=team, user=users["alice"])
spec = {"version": "lockstep/v1", "name": "digits", "dataset": {"name": "digits"}, "model": {"name": "mlp"},
        "strategy": {"name": "one_device"}, "training": {"epochs": 1}}
job = queue(team, users["alice"], spec)
attempt = launch(job, "alpha")
answer = {"job": job.pk, "attempt": attempt.pk, "team": team.pk}
"""


class House:
    """LOCKSTEP_TEST_POSTGRES (a URL of an empty database) tries the same on PostgreSQL."""

    def __init__(self, folder: Path, redis_url: str, migrated: Path) -> None:
        postgres = os.environ.get("LOCKSTEP_TEST_POSTGRES")
        database = postgres or f"sqlite:///{folder / 'house.sqlite3'}"
        self.env = {**os.environ, "DATABASE_URL": database, "REDIS_URL": redis_url, "LOCKSTEP_HOME": str(folder)}
        self.env |= {"HTTPS": "0", "DJANGO_SETTINGS_MODULE": "webapp.settings", "PYTHONPATH": str(ROOT)}
        self._processes: list[subprocess.Popen[bytes]] = []
        if not postgres:
            shutil.copyfile(migrated, folder / "house.sqlite3")
        else:
            self._run([sys.executable, "manage.py", "migrate", "-v0"])
            self._run([sys.executable, "manage.py", "flush", "-v0", "--noinput"])
        self.ids = self.ask(SEED)

    def ask(self, code: str) -> Any:
        """What `code` leaves in `answer`."""
        script = f"import django, json; django.setup()\n{textwrap.dedent(code)}\nprint(json.dumps(answer))"
        return json.loads(self._run([sys.executable, "-c", script]).splitlines()[-1])

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=self.env)
        self._processes.append(process)
        return process

    def end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()

    def _run(self, command: list[str]) -> str:
        return subprocess.run(command, cwd=ROOT, env=self.env, check=True, capture_output=True, text=True).stdout
