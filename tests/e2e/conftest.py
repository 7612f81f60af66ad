"""A served house and Chromium: pages are looked at as people see them, and their data are made by the ORM."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, sync_playwright

from tests.house import PYTHON, ROOT, House

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-features=SpareRendererForSitePerProcess",  # one more process for each page, which no test waits for
)
SHELL = """
import json, os, sys, traceback
os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
import django
django.setup()
from webapp.teams.models import *
from webapp.jobs.models import *
from webapp.cluster.models import *
from webapp.teams.login_links import login_path

def someone(name, slug, role="member"):
    team, _ = Team.objects.get_or_create(slug=slug, defaults={"name": slug.capitalize()})
    user, _ = User.objects.get_or_create(username=name)
    Membership.objects.get_or_create(team=team, user=user, defaults={"role": role})
    return team, user

known = dict(globals())
for line in sys.stdin:
    shown = []
    try:
        exec(json.loads(line), known | {"show": shown.append})
        answer = {"shown": shown[-1] if shown else None}
    except Exception:
        answer = {"error": traceback.format_exc()}
    print("<<<" + json.dumps(answer), flush=True)
"""


class Server(House):
    """A house whose web process runs; `start("ingest", "control", "host")` adds the rest."""

    _shell: subprocess.Popen[str] | None = None

    def ask(self, code: str) -> Any:
        """Run Python beside the server, models at hand; the answer is what it hands to `show(...)`, through JSON."""
        if self._shell is None:
            command = [PYTHON, "-c", SHELL]
            pipe = subprocess.PIPE
            self._shell = subprocess.Popen(command, env=self.env, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(json.dumps(code) + "\n")
        self._shell.stdin.flush()
        line = next((line for line in self._shell.stdout if line.startswith("<<<")), None)
        if line is None:
            pytest.fail(f"the shell beside the server ended with {self._shell.wait()}")
        answer = json.loads(line.removeprefix("<<<"))
        if "error" in answer:
            pytest.fail(answer["error"])
        return answer["shown"]

    def login_address(self, user: str, *, team: str = "vision", role: str = "member") -> str:
        """A one-time login link of `user`, who becomes a member of `team` when needed."""
        code = f"team, user = someone({user!r}, {team!r}, {role!r}); show(login_path(user))"
        return f"{self.url}{self.ask(code)}"

    def log_in(self, page: Page, user: str, *, team: str = "vision", role: str = "member") -> None:
        """The browser holds the user's session; what a login would show is not drawn."""
        answer = page.request.get(self.login_address(user, team=team, role=role), max_redirects=0)
        assert answer.headers["location"] == "/", answer.text()

    def end(self) -> None:
        if self._shell is not None:
            self._shell.communicate(timeout=15)
            self._shell = None
        super().end()


@contextmanager
def served(migrated: Path, *members: str) -> Iterator[Server]:
    """A house of its own, with the members beside Redis and web."""
    folder = Path(tempfile.mkdtemp(prefix="ls-e2e-"))
    house = Server(folder)
    try:
        house.begin_with(migrated)
        house.start("redis", "web", *members).wait_until_ready()
        yield house
    finally:
        house.end()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="package")
def server(migrated: Path) -> Iterator[Server]:
    """Redis and web, for all pages whose data are made up; each module makes its own jobs."""
    with served(migrated) as house:
        yield house


@pytest.fixture(scope="package")
def house(migrated: Path) -> Iterator[Server]:
    """All members of a house, for all that is really trained and looked at; nothing there is killed."""
    with served(migrated, "ingest", "control", "host") as house:
        yield house


# Not for the session: while Playwright lives, its event loop runs in this thread and Django's ORM refuses to work.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.skip(f"{CHROMIUM} is not installed (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def window(chromium: Browser) -> Iterator[Page]:
    """The one page of a module: one in a new context takes four times as much processor time as an address in this."""
    context = chromium.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def page(window: Page) -> Iterator[Page]:
    """A page as nobody has used it; it fails its test when a script throws or the content policy stops something."""
    window.set_viewport_size({"width": 1280, "height": 800})
    window.emulate_media(color_scheme="light", reduced_motion="reduce")
    window.set_default_timeout(15_000)
    faults: list[str] = []

    def hear(said: ConsoleMessage) -> None:
        if "Content Security Policy" in said.text:
            faults.append(said.text)

    def fault(error: Error) -> None:
        faults.append(str(error))

    window.on("pageerror", fault)
    window.on("console", hear)
    yield window
    forget(window)
    window.remove_listener("pageerror", fault)
    window.remove_listener("console", hear)
    assert not faults, faults


def forget(page: Page) -> None:
    """Leave the page, and nothing of its user in the browser."""
    page.unroute_all()
    page.goto(urljoin(page.url, "/healthz"))
    page.evaluate("localStorage.clear(), sessionStorage.clear()")
    page.context.clear_cookies()


def violations(page: Page) -> list[str]:
    """Serious and critical findings of axe, one line each."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['help']} ({node['html'][:160]})"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
