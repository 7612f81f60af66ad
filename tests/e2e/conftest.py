"""A served house and Chromium: pages are looked at as people see them, and their data are made by the ORM."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.house import House

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
SHELL = """
import json
from webapp.teams.models import *
from webapp.jobs.models import *
from webapp.cluster.models import *
from webapp.teams.login_links import login_path
def show(answer): print("\\n<<<" + json.dumps(answer))
def someone(name, slug, role="member"):
    team, _ = Team.objects.get_or_create(slug=slug, defaults={"name": slug.capitalize()})
    user, _ = User.objects.get_or_create(username=name)
    Membership.objects.get_or_create(team=team, user=user, defaults={"role": role})
    return team, user
"""


class Server(House):
    """A house whose web process runs; `start("ingest", "control", "host")` adds the rest."""

    def ask(self, code: str) -> Any:
        """Run Python in the server's environment; the answer is what it hands to `show(...)`, through JSON."""
        output = self.manage("shell", "-v", "0", "-c", SHELL + code).stdout
        _, mark, answer = output.rpartition("\n<<<")
        return json.loads(answer) if mark else None

    def login_address(self, user: str, *, team: str = "vision", role: str = "member") -> str:
        """A one-time login link of `user`, who becomes a member of `team` when needed."""
        code = f"team, user = someone({user!r}, {team!r}, {role!r}); show(login_path(user))"
        return f"{self.url}{self.ask(code)}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Redis and web with a database of their own, for the tests of one module; each makes its own team."""
    folder = Path(tempfile.mkdtemp(prefix="ls-e2e-"))
    house = Server(folder)
    try:
        house.manage("migrate", "-v", "0")
        house.start("redis", "web").wait_until_ready()
        yield house
    finally:
        house.end()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.skip(f"{CHROMIUM} is not installed (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page that fails its test when a script throws or the content policy stops something."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(15_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
    yield page
    context.close()
    assert not faults, faults


def violations(page: Page) -> list[str]:
    """Serious and critical findings of axe, one line each."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['help']} ({node['html'][:160]})"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
