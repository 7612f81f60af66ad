"""What becomes of checkpoints, in Chromium with real trainings: a paused job goes on where it stood, another goes on
from there under another strategy, and one is evaluated and predicted with.
"""

from __future__ import annotations

import itertools
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pyarrow import parquet

from tests.e2e.conftest import Server, violations
from tests.waiting import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.tensorflow, pytest.mark.timeout(600)]

STEPS = """(document.querySelector('[data-chart="loss"] .chart-plot')?.data ?? [])
    .map(trace => [...(trace.x ?? [])]).reduce((a, b) => a.length >= b.length ? a : b, [])"""


def steps(page: Page) -> list[float]:
    """Where the points of the loss curve lie."""
    return list(page.evaluate(STEPS))


def state(page: Page, words: str, seconds: int = 90) -> None:
    expect(page.locator("[data-state-place]")).to_contain_text(words, timeout=seconds * 1000)


def first_job(house: Server) -> int:
    """The one that was paused and went on."""
    return int(house.ask("show(Job.objects.filter(attempts__number=2).latest('pk').pk)"))


def test_a_paused_job_goes_on_where_it_stood(house: Server, page: Page, tmp_path: Path) -> None:
    house.log_in(page, "alice")
    page.goto(f"{house.url}/t/vision/jobs/new/")
    expect(page.locator("#summary")).to_contain_text("Can start now", timeout=60_000)
    page.get_by_label("Epochs", exact=True).last.fill("200")
    page.get_by_label("Every N steps").fill("1000")
    page.get_by_label("SavedModel, a zip for serving").uncheck()
    page.get_by_role("button", name="Start job").click()
    page.wait_for_url("**/jobs/*/")
    wait_for(lambda: len(steps(page)) > 5, seconds=120, what=f"the first points\n{house.log('host')}")

    page.get_by_role("button", name="Pause", exact=True).click()
    state(page, "Paused")
    assert house.ask("show(Device.objects.filter(attempt__isnull=False).count())") == 0
    page.get_by_role("tab", name="Checkpoints").click()
    table = page.locator("[data-checkpoints]")
    expect(table).to_contain_text("artifact store")
    with page.expect_download() as download:
        table.get_by_role("link", name="Download").first.click()
    checkpoint = tmp_path / "checkpoint.zip"
    download.value.save_as(checkpoint)
    assert {"manifest.json", "state.npz"} <= set(zipfile.ZipFile(checkpoint).namelist())

    page.get_by_role("button", name="Resume from step").click()
    state(page, "Running")
    page.get_by_role("tab", name="Charts").click()
    state(page, "Succeeded", seconds=240)
    wait_for(lambda: steps(page) == sorted(set(steps(page))), what="a curve without a scribble")
    page.reload()
    wait_for(lambda: len(steps(page)) > 50, what="the curve as the server keeps it")
    shown = steps(page)
    assert shown == sorted(set(shown))
    assert max(later - earlier for earlier, later in itertools.pairwise(shown)) < 60  # thinned, no gap
    job = page.url.rstrip("/").rpartition("/")[2]
    assert house.ask(f"job = Job.objects.get(pk={job}); show([job.step, job.attempts.count()])") == [2200, 2]

    page.get_by_role("tab", name="Checkpoints").click()
    with page.expect_download() as download:
        page.locator("[data-artifacts]").get_by_role("link", name="Download").click()
    assert download.value.suggested_filename.endswith("model.keras")
    model = tmp_path / "model.keras"
    download.value.save_as(model)
    assert "model.weights.h5" in zipfile.ZipFile(model).namelist()


def test_another_job_goes_on_from_its_checkpoint_under_another_strategy(house: Server, page: Page) -> None:
    house.log_in(page, "alice")
    first = first_job(house)
    page.goto(f"{house.url}/jobs/{first}/#checkpoints")
    page.get_by_role("link", name="Continue in a new job").nth(1).click()
    expect(page.locator("[data-going-on]")).to_contain_text(f"job {first}")
    page.get_by_role("radio", name="One device", exact=True).check()
    expect(page.locator("#summary")).to_contain_text("Can start now", timeout=60_000)
    page.get_by_role("button", name="Start job").click()
    page.wait_for_url(lambda address: address.endswith("/") and "/jobs/new/" not in address)
    state(page, "Succeeded", seconds=240)
    wait_for(lambda: len(steps(page)) > 1, what="its curve")
    begun = house.ask("show(Job.objects.order_by('-pk').first().resume_step)")
    assert min(steps(page)) > begun > 0


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


def test_a_checkpoint_is_evaluated_and_predicted_with(house: Server, page: Page) -> None:
    house.log_in(page, "alice")
    job = first_job(house)
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
