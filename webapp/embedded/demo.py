"""The whole of Lockstep on one machine: what `make demo` runs."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.urls import reverse
from django.utils.http import urlencode

from webapp.configure.services import submit
from webapp.embedded.alone import alone
from webapp.embedded.household import Household
from webapp.embedded.redis_server import executable
from webapp.jobs.models import Job
from webapp.jobs.services import request_stop
from webapp.teams.health import redis_fault
from webapp.teams.login_links import login_path
from webapp.teams.models import Membership, Role, Team, User
from workers.contract.spec import JobSpec, parse

ADDRESS = "127.0.0.1"
READY_SECONDS = 30.0
STOP_SECONDS = 12.0
EMBEDDED = "LOCKSTEP_EMBEDDED"

FIRST_JOB = """
version: lockstep/v1
name: digits on two workers
kind: train
dataset: {name: digits}
model: {name: cnn, options: {filters: [48, 96], units: 256, dropout: 0.5}}
strategy: {name: multi_worker_mirrored, options: {workers: 2, communication: ring}}
training:
  epochs: 250
  global_batch: 128
  optimizer: {name: adam, learning_rate: 0.0001}
  validation_split: 0.2
  shuffle: true
  seed: 1
tags: [demo]
"""


class CannotStart(RuntimeError):
    """Said to the user in this one sentence."""


def environment(home: Path) -> dict[str, str]:
    """What every process of the demo is started with: one Redis on a private socket, one host, plain HTTP."""
    redis_url = os.environ.get("REDIS_URL") or _redis_url(_socket_path(home))
    return {
        **os.environ,
        EMBEDDED: "1",
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "LOCKSTEP_HOME": str(home),
        "REDIS_URL": redis_url,
        "STATIC_ROOT": str(home / "static"),
        "HTTPS": "0",
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "LOCKSTEP_HOST": os.environ.get("LOCKSTEP_HOST", "this-machine"),
        "LOCKSTEP_STORE": os.environ.get("LOCKSTEP_STORE", str(home / "store")),
        "LOCKSTEP_RUNS": os.environ.get("LOCKSTEP_RUNS", str(home / "runs")),
        "LOCKSTEP_END_WITH_HOST": "1",
        "PYTHONUNBUFFERED": "1",
    }


def run(*, port: int, first_job: bool, say: Callable[[str], None]) -> None:
    """Start everything, submit the first job, stay until Ctrl-C, end everything.

    Raises CannotStart when the port is taken or a process does not come up, AlreadyRunning when the home has a demo,
    NoRedis when no Redis server is found.
    """
    home = Path(settings.LOCKSTEP_HOME)
    with alone(home) as lock, _until_interrupted() as interrupted:
        _require_free(port)
        household = Household(home, os.environ, say, inherited=(lock,))
        try:
            _start(household, port)
            user, team = _demo_user()
            _wait_until_ready(port, household, interrupted)
            job = submit(team=team, owner=user, spec=parse(FIRST_JOB)) if first_job else None
            say(_welcome(port, user, team, job))
            while not interrupted():
                household.tend()
                time.sleep(0.5)
            say("\nEnding: stopping jobs ...")
            _stop_jobs(say)
        finally:
            household.end()
    say("Everything has ended. `make demo` starts again; earlier jobs are kept.")


def first_job_spec() -> JobSpec:
    """The job that the demo submits by itself."""
    return parse(FIRST_JOB)


def _start(household: Household, port: int) -> None:
    python, manage = sys.executable, str(settings.BASE_DIR / "manage.py")
    path = _socket_path(Path(settings.LOCKSTEP_HOME))
    if _redis_url(path) == settings.REDIS_URL:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        household.add(
            "redis", executable(), "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700",
            "--save", "", "--appendonly", "no", "--dir", str(path.parent),
        )  # fmt: skip
    else:
        _require_redis()
    _prepare()
    household.add(
        "web", python, "-m", "uvicorn", "webapp.asgi:application", "--host", ADDRESS, "--port", str(port),
        "--log-level", "warning", "--no-access-log",
    )  # fmt: skip
    household.add("ingest", python, manage, "ingest")
    household.add("control", python, manage, "control")
    household.add("host", python, "-m", "workers.host")


def _prepare() -> None:
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0)
    if not settings.STATIC_COLLECTED:
        call_command("collectstatic", verbosity=0, interactive=False)


def _demo_user() -> tuple[User, Team]:
    """Without a password: the one-time link is the only way in."""
    team, _ = Team.objects.get_or_create(slug="demo", defaults={"name": "Demo"})
    user, created = User.objects.get_or_create(username="demo", defaults={"first_name": "Demo"})
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    Membership.objects.get_or_create(team=team, user=user, defaults={"role": Role.OWNER})
    return user, team


def _welcome(port: int, user: User, team: Team, job: Job | None) -> str:
    page = reverse("job", args=[job.pk]) if job else reverse("jobs", args=[team.slug])
    link = f"http://{ADDRESS}:{port}{login_path(user)}?{urlencode({'next': page})}"
    doing = f"Job {job.pk} ({job.name}) has been submitted." if job else "No job was submitted."
    return (
        f"\nLockstep runs at http://{ADDRESS}:{port}/   {doing}\n"
        f"Open this link, which logs you in once:\n\n  {link}\n\n"
        f"Logs: {Path(settings.LOCKSTEP_HOME) / 'logs'}    Ctrl-C ends everything."
    )


def _wait_until_ready(port: int, household: Household, interrupted: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and not interrupted():
        try:
            with urllib.request.urlopen(f"http://{ADDRESS}:{port}/readyz", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            household.tend()
            time.sleep(0.05)
    if not interrupted():
        raise CannotStart(f"The page did not come up within {READY_SECONDS:.0f} s: see {settings.LOCKSTEP_HOME}/logs.")


def _stop_jobs(say: Callable[[str], None]) -> None:
    """Ask every job to stop, so that none is left "running" in the database; a second Ctrl-C hurries."""
    for job in Job.objects.active():
        request_stop(job=job, by=None)
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline and Job.objects.active().exists():
        time.sleep(0.1)
    left = Job.objects.active().count()
    if left:
        say(f"{left} jobs did not stop in time; they are ended with the host and marked at the next start.")


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except (OSError, OverflowError) as error:
            raise CannotStart(
                f"Port {port} of {ADDRESS} cannot be used ({error}): choose another, for example `make demo PORT=8001`."
            ) from None


def _require_redis() -> None:
    """A Redis of the user's own must be there: the demo starts none in its place."""
    fault = redis_fault()
    if fault:
        raise CannotStart(
            f"REDIS_URL cannot be used ({fault}): start that Redis, or unset REDIS_URL and the demo brings its own."
        )


def _redis_url(path: Path) -> str:
    return f"unix://{path}?db=0"


def _socket_path(home: Path) -> Path:
    """In the home, unless its path is too long for a unix socket (108 bytes)."""
    path = home / "redis" / "redis.sock"
    if len(os.fsencode(path)) < 100:
        return path
    short = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"lockstep-{os.getuid()}-{short}" / "redis.sock"


@contextmanager
def _until_interrupted() -> Iterator[Callable[[], bool]]:
    """A first SIGINT or SIGTERM asks for the end; a second one raises KeyboardInterrupt at once."""
    asked: list[int] = []

    def ask(number: int, _frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
