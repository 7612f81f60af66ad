"""The compare page in Chromium: overlaid charts, the address as the view, live growth, the picker, the tables."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Server, violations
from tests.e2e.test_job_page import LOSS, SCENE
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

PAIR = SCENE + (
    "one, t1 = running('slow run'); two, t2 = running('quick run', n=400);"
    "Job.objects.filter(pk=two.pk).update(spec_json={**SPEC, 'name': 'quick run',"
    " 'training': {**SPEC['training'], 'global_batch': 256}}, global_batch=256); show([one.pk, two.pk])"
)


def _open(page: Page, server: Server, jobs: list[int], more: str = "") -> None:
    server.log_in(page, "alice")
    page.goto(f"{server.url}/t/vision/compare/?jobs={','.join(map(str, jobs))}{more}")


def _until(page: Page, expression: str) -> None:
    wait_for(lambda: page.evaluate(expression), what=expression)


def _plot(chart: str = LOSS) -> str:
    return f"document.querySelector('{chart} .chart-plot').data"


def _lines(page: Page, count: int, chart: str = LOSS) -> None:
    _until(page, f"({_plot(chart)} ?? []).length === {count}")


def test_it_lays_the_jobs_over_one_another(server: Server, page: Page) -> None:
    jobs = server.ask(PAIR)
    _open(page, server, jobs)
    _lines(page, 2)
    assert page.evaluate(f"{_plot()}.map(line => line.x.length)") == [200, 400]
    colours = page.evaluate(f"{_plot()}.map(line => line.line.color)")
    assert len(set(colours)) == 2


def test_it_holds_the_view_in_the_address(server: Server, page: Page) -> None:
    jobs = server.ask(PAIR)
    _open(page, server, jobs, "&x=samples&smooth=0.5&log=loss&metrics=loss,throughput")
    _lines(page, 4)
    last = page.evaluate(f"{_plot()}.map(line => line.x.at(-1))")
    assert sorted(set(last)) == [200 * 128, 400 * 256]
    expect(page.locator('[data-chart="throughput"]')).to_be_visible()
    page.get_by_text("Epoch", exact=True).click()
    _until(page, "location.search.includes('x=epoch')")
    page.locator(".metric-menu summary").click()
    page.locator(".metric-menu").get_by_label("Throughput").uncheck()
    expect(page.locator('[data-chart="throughput"]')).to_be_hidden()
    assert "metrics=loss" in page.url
    page.go_back()
    expect(page.locator('[data-chart="throughput"]')).to_be_visible()
    page.go_back()
    _until(page, f"Math.max(...{_plot()}.map(line => line.x.at(-1))) === {400 * 256}")


def test_an_evaluation_is_a_level_across_the_curves(server: Server, page: Page) -> None:
    jobs = server.ask(
        PAIR.replace("show([one.pk, two.pk])", "") + "three, t3 = job('tried on wine', 'succeeded', kind='evaluate');"
        "points(three, t3, 'val_loss', [0], [0.25]); points(three, t3, 'throughput', [0, 0], [900.0, 990.0]);"
        "show([one.pk, two.pk, three.pk])"
    )
    _open(page, server, jobs, "&metrics=loss,val_loss,throughput")
    _lines(page, 2)
    chart = '[data-chart="val_loss"]'
    level = f"{_plot(chart)}.find(line => line.meta === 'job {jobs[2]}')"
    _until(page, f"({_plot(chart)} ?? []).length > 0 && JSON.stringify({level}.y) === '[0.25,0.25]'")
    assert page.evaluate(f"{level}.x.at(-1)") == 400, "as far as the longest of the others"
    _lines(page, 2, '[data-chart="throughput"]')
    row = page.locator(f'#results tr[data-job="{jobs[2]}"]')
    expect(row).to_contain_text("0.2500")
    expect(row.locator('[data-column="0"]')).to_have_text("\u2013")


def test_it_hides_isolates_and_points_out(server: Server, page: Page) -> None:
    jobs = server.ask(PAIR)
    _open(page, server, jobs)
    _lines(page, 2)
    run = page.locator(f'.runs-list [data-job="{jobs[0]}"]')
    run.locator(".run-name").click()
    _lines(page, 1)
    run.locator(".run-name").dblclick()
    _until(page, f"{_plot()}.length === 1 && {_plot()}[0].meta === 'job {jobs[0]}'")
    run.locator(".run-name").dblclick()
    _lines(page, 2)
    run.hover()
    _until(page, f"{_plot()}.some(line => line.opacity < 0.5) && {_plot()}.at(-1).meta === 'job {jobs[0]}'")


def test_it_grows_with_running_jobs(server: Server, page: Page) -> None:
    jobs = server.ask(PAIR)
    _open(page, server, jobs)
    _lines(page, 2)
    expect(page.locator("[data-connection]")).to_have_attribute("data-status", "live")
    grow = (
        f"made = Job.objects.get(pk={jobs[0]}); t0 = made.started.timestamp();"
        "tell(made, points(made, t0, 'loss', list(range(201, 241)), [0.01] * 40)); show(1)"
    )
    server.ask(SCENE + grow)
    _until(page, f"{_plot()}[0].x.length === 240")
    expect(page.locator(f'#results tr[data-job="{jobs[0]}"]')).to_contain_text("0.01000", timeout=15_000)


def test_it_fetches_finer_points_of_each_job_when_zoomed(server: Server, page: Page) -> None:
    code = (
        "def long(name):\n"
        "    made, t0 = job(name, 'succeeded', step=200000, first_step=timezone.now(), ended=timezone.now())\n"
        "    steps = list(range(1, 200001))\n"
        "    points(made, t0, 'loss', steps, [1.0 + s % 7 for s in steps])\n"
        "    return made.pk\n"
        "show([long('one'), long('two')])"
    )
    _open(page, server, server.ask(SCENE + code))
    _lines(page, 2)
    box = page.locator(f"{LOSS} .nsewdrag").first.bounding_box()
    assert box is not None
    with page.expect_response(lambda response: "windows=" in response.url):
        page.mouse.move(box["x"] + box["width"] * 0.500, box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.505 + 20, box["y"] + 60, steps=8)
        page.mouse.up()
    apart = f"{_plot()}.map(line => (line.x.at(-1) - line.x[0]) / line.x.length)"
    _until(page, f"{apart}.every(steps => steps < 30)")
    page.get_by_role("button", name="Reset zoom").click()
    _until(page, f"{apart}.every(steps => steps > 90)")


def test_it_says_what_differs_and_who_won(server: Server, page: Page) -> None:
    jobs = server.ask(PAIR)
    _open(page, server, jobs)
    settings = page.locator(".spec-table tbody tr")
    expect(settings.filter(visible=True)).to_have_count(1)
    expect(settings.filter(visible=True)).to_contain_text("training.global_batch")
    page.locator("#only-differing").uncheck()
    expect(settings.filter(has_text="training.optimizer.learning_rate")).to_be_visible()
    expect(page.locator(f'#results tr[data-job="{jobs[1]}"] .is-best').first).to_contain_text("★")
    page.locator("#results th[data-column] button", has_text="Final").first.click()
    expect(page.locator("#results tbody tr").first).to_have_attribute("data-job", str(jobs[1]))


def test_it_adds_and_removes_jobs_by_name(server: Server, page: Page) -> None:
    server.ask(SCENE + "made, t0 = running('needle in the stack'); show(made.pk)")
    jobs = server.ask(PAIR)
    _open(page, server, jobs)
    field = page.get_by_role("combobox")
    field.fill("needle")
    expect(page.get_by_role("option")).to_have_count(1)
    field.press("Enter")
    expect(page.locator(".runs-list li")).to_have_count(3)
    page.get_by_role("button", name="Remove needle in the stack from the comparison").click()
    expect(page.locator(".runs-list li")).to_have_count(2)
    page.go_back()
    expect(page.locator(".runs-list li")).to_have_count(3)


def test_it_explains_an_empty_comparison(server: Server, page: Page) -> None:
    _open(page, server, [])
    expect(page.get_by_role("heading", name="Choose jobs to compare")).to_be_visible()


def test_it_stays_light_with_a_hundred_jobs(server: Server, page: Page) -> None:
    jobs = server.ask(SCENE + "show([running(f'sweep {n}', n=100, replicas=0)[0].pk for n in range(100)])")
    _open(page, server, jobs)
    _lines(page, 100)
    address = "document.querySelector('.compare').dataset.curves + location.search + '&metrics=loss'"
    assert page.evaluate(f"fetch({address}).then(answer => answer.text()).then(text => text.length)") < 600_000
    panel = page.locator(".runs-list")
    assert panel.evaluate("list => list.scrollHeight > list.clientHeight")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_can_be_used_by_everybody(server: Server, page: Page, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    _open(page, server, server.ask(PAIR))
    _lines(page, 2)
    assert not violations(page)


@pytest.mark.parametrize("width", [390, 1280, 1680])
def test_it_needs_no_sideways_scroll(server: Server, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    _open(page, server, server.ask(PAIR))
    _lines(page, 2)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
