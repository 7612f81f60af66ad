"""A model of one's own, from the file in the browser to the trained job."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Server, violations
from tests.workers.contract.keras_files import dense, entry, layer, sequential, weights, write

pytestmark = [pytest.mark.browser, pytest.mark.e2e]


@pytest.fixture
def member(house: Server, page: Page) -> Page:
    house.log_in(page, "alice", team="library", role="owner")
    return page


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As Keras saves it."""
    config = sequential(entry(8, 8, 1), layer("Flatten", {"name": "flatten"}), dense(10, 64, activation="softmax"))
    return write(tmp_path_factory.mktemp("models") / "digits net.keras", config, h5=weights(64, 10))


def choose(page: Page, house: Server, path: Path) -> None:
    page.goto(f"{house.url}/t/library/library/")
    page.get_by_role("link", name="Upload", exact=True).click()
    page.locator("#file").set_input_files(path)
    expect(page.locator("[data-file-name]")).to_have_text(path.name)


def test_a_file_is_uploaded_checked_chosen_and_trained(house: Server, member: Page, model: Path) -> None:
    choose(member, house, model)
    expect(member.get_by_label("Name")).to_have_value("digits net")
    member.get_by_role("button", name="Upload").click()
    expect(member.locator("[data-doing]")).to_contain_text("throw-away process", timeout=30_000)
    member.wait_for_url(re.compile(r"/library/\d+/$"), timeout=150_000)
    expect(member.locator(".facts")).to_contain_text("650")
    expect(member.locator("main")).to_contain_text("the softmax at the end is taken off")
    assert violations(member) == []
    member.get_by_role("link", name="Use in a job").click()
    expect(member.get_by_role("radio", name="digits net")).to_be_checked()
    member.locator("[name='strategy.mirrored.devices']").fill("2")
    member.locator("[name='training.epochs']").fill("15")
    expect(member.locator("#summary")).to_contain_text("Can start now")
    member.get_by_role("button", name="Start job").click()
    member.wait_for_url("**/jobs/*/")
    expect(member.locator("[data-state-place]")).to_contain_text("Succeeded", timeout=150_000)
    assert house.ask("show(Job.objects.get(team__slug='library').model)") == "keras_file"
    latest = house.ask("show(Job.objects.get(team__slug='library').latest)")
    assert latest["accuracy"] > 0.5
    member.goto(f"{house.url}/t/library/library/")
    member.get_by_role("link", name="digits net").click()
    expect(member.locator("main")).to_contain_text("Succeeded")


def test_what_is_refused_says_why_and_leaves_nothing(house: Server, member: Page, tmp_path: Path) -> None:
    path = write(tmp_path / "trap.keras", sequential(entry(4), layer("Lambda")))
    choose(member, house, path)
    with member.expect_response(lambda answer: answer.request.method == "DELETE"):
        member.get_by_role("button", name="Upload").click()
    expect(member.locator("[data-reason]")).to_contain_text("holds a Lambda layer, which is code")
    member.goto(f"{house.url}/t/library/library/")
    expect(member.locator("main")).not_to_contain_text("trap")


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(house: Server, member: Page, tmp_path: Path) -> None:
    path = tmp_path / "vast.csv"
    with path.open("wb") as file:
        file.truncate(2**31 + 1)
    choose(member, house, path)
    member.get_by_role("button", name="Upload").click()
    expect(member.locator("[data-problems]")).to_contain_text("vast.csv is larger than 2,048 MiB")
    expect(member.get_by_label("Name")).to_have_value("vast")


def test_a_program_that_reaches_out_is_refused_in_words(house: Server, member: Page, tmp_path: Path) -> None:
    path = tmp_path / "spy.py"
    path.write_text("import os\nprint(sorted(os.environ))\nos.fork()\n")
    choose(member, house, path)
    member.get_by_role("button", name="Upload").click()
    expect(member.locator("[data-reason]")).to_contain_text("without network, other programs", timeout=150_000)
    expect(member.locator("[data-output] pre")).not_to_contain_text("SECRET_KEY")


def test_an_upload_goes_on_after_a_reload(house: Server, member: Page, tmp_path: Path) -> None:
    path = tmp_path / "long.keras"
    path.write_bytes(b"PK\x03\x04" + b"\0" * (20 * 2**20))
    choose(member, house, path)
    # The second range is held back until the page is gone.
    member.route("**/uploads/*?offset=8388608", lambda route: route.abort())
    member.get_by_role("button", name="Upload").click()
    expect(member.locator("[data-doing]")).to_contain_text("trying again")
    member.goto(f"{house.url}/t/library/jobs/")
    member.unroute("**/uploads/*?offset=8388608")
    choose(member, house, path)
    asked: list[str] = []
    # Held until it is written down: of the page's events one may be missed on a busy machine.
    member.route("**/uploads/*?offset=*", lambda route: (asked.append(route.request.url), route.continue_()))
    member.get_by_role("button", name="Go on").click()
    expect(member.locator("[data-reason]")).to_contain_text("torn or not a .keras file", timeout=30_000)
    assert [url.partition("offset=")[2] for url in asked] == ["8388608", "16777216"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["", "upload/", "dataset/digits/", "model/cnn/"])
def test_everybody_can_use_it_at_any_width(house: Server, member: Page, path: str, theme: str) -> None:
    member.emulate_media(color_scheme=theme, reduced_motion="reduce")
    member.goto(f"{house.url}/t/library/library/{path}")
    assert violations(member) == []
    for width in (390, 1280):
        member.set_viewport_size({"width": width, "height": 800})
        assert member.evaluate("document.documentElement.scrollWidth") <= width


def test_a_table_is_uploaded_looked_at_and_trained_on(house: Server, member: Page, tmp_path: Path) -> None:
    path = tmp_path / "leaves.csv"
    rows = (f"{number % 17},{number % 5},{'oak' if number % 17 > 8 else 'elm'}" for number in range(600))
    path.write_text("width,height,kind\n" + "\n".join(rows) + "\n")
    choose(member, house, path)
    member.get_by_role("button", name="Upload").click()
    member.wait_for_url(re.compile(r"/library/\d+/$"), timeout=150_000)
    expect(member.locator(".preview")).to_contain_text("elm")
    member.get_by_role("link", name="Use in a job").click()
    expect(member.get_by_role("radio", name="leaves")).to_be_checked()
    expect(member.locator("[name='dataset.csv.target']")).to_have_value("kind")
    member.get_by_role("radio", name="One device", exact=True).check()
    expect(member.locator("#summary")).to_contain_text("Can start now")
    member.get_by_role("button", name="Start job").click()
    member.wait_for_url("**/jobs/*/")
    expect(member.locator("[data-state-place]")).to_contain_text("Succeeded", timeout=150_000)
