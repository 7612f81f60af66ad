"""The jobs list in Chromium."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Server, violations

pytestmark = pytest.mark.browser

JOBS = """
from webapp.jobs import services
from workers.contract.spec import parse
def job(name, team="table", **fields):
    team, user = someone("alice", team, "owner")
    spec = parse({"version": "lockstep/v1", "name": name, "dataset": {"name": "digits"}, "model": {"name": "mlp"},
        "strategy": {"name": "mirrored"}, "training": {"epochs": 10}})
    made = services.create(team=team, owner=user, spec=spec)
    Job.objects.filter(pk=made.pk).update(**fields)
    return made.pk
"""
FOUR = """
Job.objects.filter(team__slug="table").delete()
spark = [[step, 2.0 / (step + 1)] for step in range(30)]
ids = [
    job("alpha", state="succeeded", step=110, spark=spark,
        latest={"loss": 0.066, "accuracy": 0.98, "throughput": 12400}),
    job("beta", state="failed", step=40, cause="The loss became NaN.",
        latest={"loss": "NaN"}, spark=[[1, 1.0], [2, "NaN"]]),
    job("gamma", state="running", step=55, latest={"loss": 0.5, "step_time": 0.2}, spark=spark, phase="training",
        processes_up=1, processes_total=1),
    job("delta"),
]
show(ids)
"""


@pytest.fixture
def ids(server: Server) -> list[int]:
    made: list[int] = server.ask(JOBS + FOUR)
    return made


@pytest.fixture
def table(server: Server, page: Page, ids: list[int]) -> Page:
    server.log_in(page, "alice", team="table", role="owner")
    page.goto(f"{server.url}/t/table/jobs/")
    expect(page.locator("tbody tr")).to_have_count(4)
    return page


def names(page: Page) -> list[str]:
    return page.locator("tbody [data-link]").all_inner_texts()


def test_rows_say_what_the_server_wrote_before_any_script_ran(server: Server, table: Page) -> None:
    state = table.context.storage_state()
    assert table.context.browser is not None
    context = table.context.browser.new_context(java_script_enabled=False, storage_state=state)
    bare = context.new_page()
    bare.goto(f"{server.url}/t/table/jobs/")
    # A refresh writes every cell anew in the browser: the words must be the server's, or the page would jump.
    with table.expect_response(re.compile("/jobs/rows")):
        table.get_by_role("link", name="All").click()
    expect(table.locator(".jobs-frame")).to_have_attribute("aria-busy", "false")
    for column in ("state", "name", "data", "strategy", "progress", "loss", "accuracy", "throughput", "owner"):
        cells = f"tbody .col-{column}"
        assert table.locator(cells).all_inner_texts() == bare.locator(cells).all_inner_texts()
    context.close()


def test_columns_can_be_left_out_and_stay_out(table: Page) -> None:
    table.get_by_text("Columns", exact=True).click()
    table.locator(".column-menu").get_by_label("Strategy").uncheck()
    expect(table.locator(".col-strategy").first).to_be_hidden()
    expect(table.locator("tbody .col-loss").first).to_be_visible()
    table.reload()
    expect(table.locator("tbody .col-strategy").first).to_be_hidden()
    table.get_by_text("Columns", exact=True).click()
    box = table.locator(".column-menu").get_by_label("Strategy")
    expect(box).not_to_be_checked()
    assert not violations(table)
    box.check()
    expect(table.locator("tbody .col-strategy").first).to_be_visible()
    table.evaluate("localStorage.setItem('lockstep-job-columns', 'no JSON')")
    table.reload()
    expect(table.locator("tbody .col-strategy").first).to_be_visible()


def test_the_filter_narrows_the_table_and_stands_in_the_address(table: Page) -> None:
    table.keyboard.press("/")
    table.keyboard.type("state:running gam")
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table).to_have_url(re.compile(r"q=state%3Arunning\+gam"))
    table.reload()
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table.locator("#filter")).to_have_value("state:running gam")


def test_a_filter_that_cannot_be_says_so_and_keeps_the_rows(table: Page) -> None:
    table.locator("#filter").fill("state:flying")
    expect(table.locator("#filter-error")).to_contain_text("flying is not a state of a job")
    expect(table.locator("tbody tr")).to_have_count(4)


def test_a_filter_without_a_match_shows_the_way_back(table: Page) -> None:
    table.locator("#filter").fill("nothing like this")
    expect(table.get_by_role("heading", name="No job matches this filter")).to_be_visible()
    table.get_by_role("link", name="Show all jobs").click()
    expect(table.locator("tbody tr")).to_have_count(4)


def test_a_head_sorts_and_back_takes_it_back(table: Page) -> None:
    newest_first = ["delta", "gamma", "beta", "alpha"]
    assert names(table) == newest_first
    table.get_by_role("link", name="Name").click()
    expect(table.locator("tbody [data-link]").first).to_have_text("alpha")
    expect(table.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
    table.go_back()
    expect(table.locator("tbody [data-link]").first).to_have_text("delta")
    assert names(table) == newest_first


def test_two_selected_jobs_go_to_the_compare_page(table: Page, ids: list[int]) -> None:
    table.keyboard.press("j")
    table.keyboard.press("x")
    table.keyboard.press("j")
    table.keyboard.press("x")
    expect(table.locator("[data-count]")).to_have_text("2 selected")
    with table.expect_navigation():
        table.keyboard.press("c")
    assert table.url.endswith(f"/t/table/compare/?jobs={ids[2]},{ids[3]}")


def test_one_selected_job_is_not_compared_and_says_what_is_missing(table: Page) -> None:
    table.get_by_label("Select gamma").check()
    table.get_by_role("button", name="Compare").click()
    expect(table.locator("#toasts")).to_contain_text("Select two jobs or more")


def test_enter_opens_the_job_under_the_keyboard(table: Page, ids: list[int]) -> None:
    for key in ("j", "j", "k", "Enter"):
        table.keyboard.press(key)
    table.wait_for_url(f"**/jobs/{ids[3]}/")


def test_the_keys_are_listed(table: Page) -> None:
    table.keyboard.press("?")
    expect(table.get_by_role("dialog")).to_contain_text("Next job")
    table.keyboard.press("Escape")
    expect(table.get_by_role("dialog")).to_be_hidden()


def test_a_change_arrives_by_itself_and_no_row_moves(server: Server, table: Page, ids: list[int]) -> None:
    expect(table.locator("[data-connection]")).to_have_attribute("data-status", "live")
    before = names(table)
    server.ask(
        f"from webapp.jobs import notices\nfrom django.db.models import F\n"
        f"Job.objects.filter(pk={ids[2]}).update(state='succeeded', step=110, revision=F('revision') + 1)\n"
        f"notices.changed([{ids[2]}])"
    )
    expect(table.locator(f"tr[data-id='{ids[2]}'] .state")).to_have_text("Succeeded")
    expect(table.locator("#announcer")).to_have_text("gamma: Succeeded")
    assert names(table) == before


def test_a_new_job_waits_behind_a_button_while_somebody_reads(server: Server, table: Page) -> None:
    expect(table.locator("[data-connection]")).to_have_attribute("data-status", "live")
    table.locator("tbody tr").nth(2).hover()
    server.ask(JOBS + "from webapp.jobs import notices\nnotices.changed([job('epsilon')])")
    expect(table.locator("[data-fresh]")).to_have_text("1 new job")
    expect(table.locator("tbody tr")).to_have_count(4)
    table.locator("[data-fresh]").click()
    expect(table.locator("tbody [data-link]").first).to_have_text("epsilon")


def test_an_empty_team_is_shown_the_next_step(server: Server, page: Page) -> None:
    server.log_in(page, "alice", team="fresh", role="owner")
    page.goto(f"{server.url}/t/fresh/jobs/")
    expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
    page.locator(".empty").get_by_role("link", name="New job").click()
    page.wait_for_url("**/t/fresh/jobs/new/")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_it(table: Page, theme: str) -> None:
    table.emulate_media(color_scheme=theme, reduced_motion="reduce")
    expect(table.locator("html")).to_have_attribute("data-theme", theme)
    assert violations(table) == []


@pytest.mark.parametrize("width", [390, 1280, 1680])
def test_nothing_sticks_out_at_any_width(table: Page, width: int) -> None:
    table.set_viewport_size({"width": width, "height": 800})
    assert table.evaluate("document.documentElement.scrollWidth") <= width


def test_the_chosen_theme_is_kept(server: Server, table: Page) -> None:
    table.locator(".user-menu summary").click()
    table.get_by_role("radio", name="Dark").click()
    expect(table.locator("html")).to_have_attribute("data-theme", "dark")
    table.reload()
    expect(table.locator("html")).to_have_attribute("data-theme", "dark")


def test_log_out_ends_the_session(table: Page) -> None:
    table.locator(".user-menu summary").click()
    table.get_by_role("button", name="Log out").click()
    expect(table.get_by_role("heading", name="Log in")).to_be_visible()
    assert violations(table) == []
