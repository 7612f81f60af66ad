"""The fixed cast (Alice owns, Bob is a member, Rita only reads, Charlie is a stranger) and a private Redis."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis as redis_client
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.seed import SEED_SPEC
from tests.waiting import wait_for
from webapp.teams.models import Membership, Role, Team, User

ROOT = Path(__file__).resolve().parent.parent
__all__ = ["RedisServer", "wait_for"]


TOGETHER = {
    # They share houses and a browser, and train on all cores.
    "tests/e2e/": "tests/e2e",
    # They share warm engines.
    **dict.fromkeys(
        (
            f"tests/workers/training/test_{name}.py"
            for name in ("resuming", "inference", "files", "initial_model", "early_stopping")
        ),
        "tests/workers/training",
    ),
}


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Modules are dealt out whole, some of them together."""

    class Dealing(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            together = (scope for begin, scope in TOGETHER.items() if nodeid.startswith(begin))
            return next(together, super()._split_scope(nodeid))

    return Dealing(config, log)


class RedisServer:
    """A Redis of one test on a unix socket, that can be killed and started again with nothing remembered."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}?db=0"
        self.celery_url = f"redis+socket://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> RedisServer:
        from webapp.embedded.redis_server import executable

        command = [executable(), "--port", "0", "--unixsocket", str(self.socket), "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=self.socket.parent)
        wait_for(self._answers, what="Redis")
        return self

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def client(self) -> redis_client.Redis:
        return redis_client.Redis.from_url(self.url)

    def _answers(self) -> bool:
        try:
            return bool(self.client().ping())
        except redis_client.ConnectionError:
            return False


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    folder = Path(tempfile.mkdtemp(prefix="ls-redis-"))
    server = RedisServer(folder).start()
    yield server
    server.kill()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with all tables and no rows, for houses to begin with: `migrate` takes seconds each time."""
    folder = tmp_path_factory.mktemp("migrated")
    path = folder / "empty.sqlite3"
    environment = {**os.environ, "LOCKSTEP_HOME": str(folder), "DATABASE_URL": f"sqlite:///{path}"}
    subprocess.run([sys.executable, ROOT / "manage.py", "migrate", "-v0"], env=environment, check=True)
    return path


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="vision", name="Vision")


def _user(name: str, team: Team | None, role: Role = Role.MEMBER) -> User:
    user = User.objects.create_user(name, f"{name}@example.org", "correct horse battery")
    if team is not None:
        Membership.objects.create(user=user, team=team, role=role)
    return user


@pytest.fixture
def alice(team: Team) -> User:
    return _user("alice", team, Role.OWNER)


@pytest.fixture
def bob(team: Team) -> User:
    return _user("bob", team)


@pytest.fixture
def rita(team: Team) -> User:
    return _user("rita", team, Role.READER)


@pytest.fixture
def charlie(team: Team) -> User:
    other = Team.objects.create(slug="speech", name="Speech")
    return _user("charlie", other, Role.OWNER)


@pytest.fixture
def seed_spec() -> dict[str, object]:
    """The example of the contract: digits on two workers."""
    return copy.deepcopy(SEED_SPEC)
