"""A checkpoint put to use in the browser: evaluated and predicted with, each as a job of its own."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pyarrow import parquet

from tests.e2e.conftest import Server, violations

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.tensorflow, pytest.mark.timeout(600)]
SHORT = """
from webapp.configure.services import submit
from workers.contract.spec import parse
team, alice = someone("alice", "vision")
job = submit(team=team, owner=alice, spec=parse({
    "version": "lockstep/v1", "name": "digits", "dataset": {"name": "digits"}, "model": {"name": "linear"},
    "strategy": {"name": "one_device"}, "training": {"epochs": 2}, "checkpoint": {"every_steps": 11}}))
show(job.pk)
"""


def put_to_use(page: Page, house: Server, job: int, verb: str) -> None:
    """From the checkpoint's row through the form to the end of the new job."""
    page.goto(f"{house.url}/jobs/{job}/#checkpoints")
    page.locator("#panel-checkpoints").get_by_role("link", name=verb).first.click()
    expect(page.get_by_role("radio", name=verb)).to_be_checked()
    expect(page.locator("#summary")).to_contain_text("Can start now", timeout=60_000)
    expect(page.get_by_label("Optimizer")).to_be_hidden()
    # While the server is asked once more the figures are faint.
    expect(page.locator("#summary")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#summary")).to_have_css("opacity", "1")
    assert not violations(page)
    page.get_by_role("button", name="Start job").click()
    page.wait_for_url(lambda url: f"/jobs/{job}/" not in url and "/new/" not in url)
    expect(page.locator("[data-state-place]")).to_contain_text("Succeeded", timeout=90_000)


def test_it_is_evaluated_and_predicted_with(house: Server, page: Page) -> None:
    house.log_in(page, "alice")
    job = int(house.ask(SHORT))
    page.goto(f"{house.url}/jobs/{job}/#checkpoints")
    expect(page.get_by_role("link", name="Evaluate").first).to_be_visible(timeout=120_000)

    put_to_use(page, house, job, "Evaluate")
    results = page.locator("[data-metrics]")
    expect(results.get_by_role("row")).to_have_count(3)
    expect(results).to_contain_text("Accuracy")
    expect(page.locator("[data-field=phase_text]")).to_have_text("Evaluated")
    assert not violations(page)

    put_to_use(page, house, job, "Predict")
    expect(page.locator("[data-field=phase_text]")).to_have_text("Predicted 1,797 examples")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").first.click()
    content = Path(download.value.path()).read_bytes()
    assert parquet.read_table(BytesIO(content)).num_rows == 1797
