"""The whole house as real processes on free ports, each of which a test may kill and start again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import psutil
import redis

from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class House:
    """Redis, web, ingest, control and one training host over one database, all below `folder`.

    `commands` may replace what a member is started with (the production test takes them from docker-compose.yml).
    """

    MEMBERS = ("redis", "web", "ingest", "control", "host")

    def __init__(self, folder: Path, *, env: Mapping[str, str] | None = None, host: str = "test-host") -> None:
        self.folder = folder
        self.port = free_port()
        self.socket = folder / "redis.sock"
        self.database = folder / "house.sqlite3"
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {
            **os.environ,
            "LOCKSTEP_HOME": str(folder),
            "REDIS_URL": f"unix://{self.socket}?db=0",
            "DATABASE_URL": f"sqlite:////{self.database}",
            "SECRET_KEY": "only-for-tests-" + "x" * 50,
            "HTTPS": "0",
            "ALLOWED_HOSTS": "127.0.0.1",
            "LOCKSTEP_HOST": host,
            "LOCKSTEP_RUNS": str(folder / "runs"),
            "LOCKSTEP_STORE": str(folder / "store"),
            "LOCKSTEP_OFFLINE": "1",
            "STATIC_ROOT": str(folder / "no-static"),
            "PYTHONUNBUFFERED": "1",
            **(env or {}),
        }
        self.commands = {
            "redis": self._redis_command(),
            "web": [
                PYTHON,
                "-m",
                "uvicorn",
                "webapp.asgi:application",
                "--host",
                "127.0.0.1",
                "--port",
                str(self.port),
            ],
            "ingest": [PYTHON, "manage.py", "ingest"],
            "control": [PYTHON, "manage.py", "control"],
            "host": [PYTHON, "-m", "workers.host"],
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *names: str) -> House:
        for name in names or self.MEMBERS:
            with (self.folder / f"{name}.log").open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    self.commands[name], env=self.env, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
            if name == "redis":
                wait_for(self._redis_answers, what="Redis")
        return self

    def begin_with(self, migrated: Path) -> None:
        """Take this database, of the fixture of that name, for a house's own."""
        shutil.copyfile(migrated, self.database)

    def kill(self, name: str) -> None:
        """SIGKILL, as a crash would."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def celery_worker(self) -> psutil.Process:
        """The host daemon's Celery worker."""

        def find() -> psutil.Process | None:
            for child in psutil.Process(self.processes["host"].pid).children():
                with contextlib.suppress(psutil.NoSuchProcess):  # a zombie is one, too
                    if "celery" in child.cmdline():
                        return child
            return None

        return wait_for(find, what="the Celery worker")

    def wait_until_ready(self) -> House:
        wait_for(self._ready, seconds=40, what=f"{self.url}/readyz\n{self.log('web')}")
        return self

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `manage.py` in this house's environment."""
        return subprocess.run(
            [PYTHON, "manage.py", *arguments], env=self.env, cwd=ROOT, check=check, capture_output=True, text=True
        )

    def log(self, name: str, lines: int = 30) -> str:
        path = self.folder / f"{name}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def end(self) -> None:
        redis = self.processes.pop("redis", None)  # the last one, since the others miss it
        _end(*self.processes.values())
        _end(*filter(None, [redis]))
        self.processes.clear()
        for process in supervisors(self.folder):
            process.kill()

    def _redis_command(self) -> list[str]:
        from webapp.embedded.redis_server import executable

        return [executable(), "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--appendonly", "no"]

    def _redis_answers(self) -> bool:
        try:
            return bool(redis.Redis(unix_socket_path=str(self.socket)).ping())
        except redis.ConnectionError:
            return False

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _end(*processes: subprocess.Popen[bytes]) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def supervisors(folder: Path) -> list[psutil.Process]:
    """What a host leaves running on purpose; a test does not."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = " ".join(process.info["cmdline"] or [])
        if str(folder) in command and "workers." in command:
            found.append(process)
    return found
