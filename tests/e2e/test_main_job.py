"""The main job: a person fills the form in Chromium, a real training on two workers runs, its curve grows live."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Server
from tests.waiting import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.tensorflow]

PLOT = """document.querySelector('[data-chart="loss"] .chart-plot')"""


def drawn(page: Page) -> int:
    """Points of the longest curve in the loss chart."""
    return int(page.evaluate(f"Math.max(0, ...({PLOT}?.data ?? []).map(trace => trace.x?.length ?? 0))"))


def fill(page: Page, house: Server, *, epochs: int) -> None:
    page.goto(house.login_address("alice"))
    page.goto(f"{house.url}/t/vision/jobs/new/")
    expect(page.locator("#summary")).to_contain_text("Can start now", timeout=30_000)
    page.get_by_label("Epochs", exact=True).last.fill(str(epochs))


def test_it_trains_on_two_workers_and_shows_the_curve(house: Server, page: Page) -> None:
    fill(page, house, epochs=40)
    page.get_by_role("radio", name="Multi-worker mirrored", exact=True).check()
    page.get_by_label("Communication").select_option("ring")
    page.get_by_role("button", name="Start job").click()
    page.wait_for_url("**/jobs/*/")
    wait_for(lambda: drawn(page), seconds=90, what=f"the first point\n{house.log('host')}")
    expect(page.locator("[data-state-place]")).to_contain_text("Succeeded", timeout=60_000)
    wait_for(lambda: drawn(page) == 440, what="all points")
    expect(page.locator("[data-field=phase_text]")).to_have_text("Finished 440 steps")
    page.get_by_role("tab", name="Logs").click()
    expect(page.locator("#panel-logs")).to_contain_text("worker-1")


def test_it_stops_when_told_in_the_browser(house: Server, page: Page) -> None:
    fill(page, house, epochs=100_000)
    page.get_by_role("button", name="Start job").click()
    page.wait_for_url("**/jobs/*/")
    wait_for(lambda: drawn(page), seconds=90, what=f"the first point\n{house.log('host')}")
    page.get_by_role("button", name="Stop").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.locator("[data-state-place]")).to_contain_text("Cancelled", timeout=10_000)
    expect(page.locator("[data-field=cause]")).to_have_text("Stopped by alice.")
