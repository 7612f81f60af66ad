"""The live job page in Chromium: charts that grow, heal and zoom, logs, tabs, stop, and every state."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Server, violations
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

SCENE = """
import numpy as np, time
from datetime import timedelta
from django.conf import settings
from django.utils import timezone
import redis
from webapp.ingest.models import LogLine
from webapp.live import feed
from webapp.live.messages import Line, LogMessage, PointsMessage, SeriesPart
from webapp.metrics import store
team, alice = someone("alice", "vision")
SPEC = {"version": "lockstep/v1", "name": "digits", "kind": "train", "dataset": {"name": "digits", "options": {}},
    "model": {"name": "mlp", "options": {"units": [256, 128], "dropout": [0.4, 0.3]}},
    "strategy": {"name": "multi_worker_mirrored", "options": {"workers": 2, "communication": "ring"}},
    "training": {"epochs": 10, "global_batch": 128, "optimizer": {"name": "rmsprop", "learning_rate": 0.001},
        "validation_split": 0.2, "shuffle": True, "seed": 1}}
def job(name, state, replicas=2, **more):
    started = timezone.now() - timedelta(seconds=60)
    made = Job.objects.create(team=team, owner=alice, name=name, spec_json={**SPEC, "name": name}, dataset="digits",
        model="mlp", strategy="multi_worker_mirrored", replicas=replicas, total_steps=1000, steps_per_epoch=100,
        global_batch=128, state=state, revision=1, **{"started": started, **more})
    return made, started.timestamp()
def points(job, t0, name, steps, values, replica=None):
    times = [t0 + step / 100 for step in steps]
    start = store.counts(job.pk).get(store.Key(job.pk, name, replica), 0)
    store.append([store.batch(owner=job.pk, name=name, replica=replica, steps=steps, times=times, values=values)])
    return SeriesPart(name=name, replica=replica, start=start, steps=steps, times=times, values=values)
def running(name, n=200, replicas=2, **more):
    one = {"device": "cpu:0", "gauge": "device"}
    info = {"replicas": [{"replica": r, "process": f"worker-{r}", **one} for r in range(replicas)]}
    made, t0 = job(name, "running", replicas, started_info=info, phase="training", step=n, epoch=1 + n // 100,
        first_step=timezone.now(), latest={"loss": 0.5, "throughput": 9000.0}, **more)
    steps = list(range(1, n + 1))
    points(made, t0, "loss", steps, [2.0 / step ** 0.5 for step in steps])
    points(made, t0, "throughput", steps[::10], [9000.0] * len(steps[::10]))
    for r in range(replicas):
        points(made, t0, "utilization", steps[::10], [(30.0 if r == 1 else 90.0)] * len(steps[::10]), replica=r)
    return made, t0
def tell(job, *parts, lines=None):
    connection = redis.Redis.from_url(settings.REDIS_URL)
    message = PointsMessage(job=job.pk, series=list(parts)) if parts else None
    feed.tell(connection, [feed.News(job=job.pk, team=job.team_id, points=message, lines=lines, changed=True)])
"""
LOSS = '[data-chart="loss"]'
MODULES = """const load = (name) => import(
  document.querySelector('script[src*="job/page"]').src.replace(/job\\/page.*/, `charts/${name}.js`));"""


def _open(page: Page, server: Server, job: int, fragment: str = "") -> None:
    server.log_in(page, "alice")
    page.goto(f"{server.url}/jobs/{job}/{fragment}")
    page.wait_for_selector(".job[data-loaded]", state="attached")


def _drawn(page: Page, chart: str = LOSS, *, points: int = 1) -> None:
    """Waits until the chart holds at least so many points in its longest line."""
    _until(page, f"Number(document.querySelector('{chart}')?.dataset.points ?? 0) >= {points}")


def _until(page: Page, expression: str) -> None:
    # Playwright's own wait_for_function polls with eval, which the page's content policy refuses.
    wait_for(lambda: page.evaluate(expression), what=expression)


def test_it_draws_what_there_is_and_grows_with_the_socket(server: Server, page: Page) -> None:
    pk = server.ask(SCENE + "made, t0 = running('grows'); show(made.pk)")
    _open(page, server, pk)
    _drawn(page, points=200)
    expect(page.locator("[data-field=phase_text]")).to_have_text("Step 200 of 1,000")
    expect(page.locator("[data-connection]")).to_have_attribute("data-status", "live")
    more = f"made = Job.objects.get(pk={pk}); t0 = made.started.timestamp();"
    grow = "tell(made, points(made, t0, 'loss', list(range(201, 251)), [0.1] * 50)); show(1)"
    server.ask(SCENE + more + grow)
    _drawn(page, points=250)
    expect(page.locator(f"{LOSS} .chip-value").first).to_have_text("0.1000")


def test_it_asks_for_points_that_were_lost_on_the_way(server: Server, page: Page) -> None:
    pk = server.ask(SCENE + "made, t0 = running('gap'); show(made.pk)")
    _open(page, server, pk)
    _drawn(page, points=200)
    # Fifty points are stored but never told; the next part begins behind them.
    lost = (
        f"made = Job.objects.get(pk={pk}); t0 = made.started.timestamp();"
        "points(made, t0, 'loss', list(range(201, 251)), [0.2] * 50);"
        "tell(made, points(made, t0, 'loss', list(range(251, 261)), [0.1] * 10)); show(1)"
    )
    server.ask(SCENE + lost)
    _drawn(page, points=260)
    steps = page.evaluate(f"document.querySelector('{LOSS} .chart-plot').data[0].x")
    assert steps == list(range(1, 261))


def test_it_marks_a_nan_where_it_happened(server: Server, page: Page) -> None:
    code = (
        "made, t0 = running('nan', n=50); nan = float('nan');"
        "points(made, t0, 'loss', [51, 52, 53], [nan, nan, float('inf')]); show(made.pk)"
    )
    _open(page, server, server.ask(SCENE + code))
    _drawn(page, points=53)
    expect(page.locator(f"{LOSS} .chart-note")).to_contain_text("NaN from step 51")
    expect(page.locator(f"{LOSS} .chip-value").first).to_have_text("∞")
    marked = page.evaluate(
        f"document.querySelector('{LOSS} .chart-plot').data.filter(t => t.yaxis === 'y2').flatMap(t => t.x)"
    )
    assert 51 in marked and 53 in marked


def test_it_fetches_finer_points_when_zoomed_and_forgets_them_after(server: Server, page: Page) -> None:
    code = (
        "made, t0 = job('long', 'succeeded', step=200000, first_step=timezone.now(), ended=timezone.now());"
        "steps = list(range(1, 200001)); points(made, t0, 'loss', steps, [1.0 + s % 7 for s in steps]); show(made.pk)"
    )
    _open(page, server, server.ask(SCENE + code))
    _drawn(page, points=1000)
    box = page.locator(f"{LOSS} .nsewdrag").first.bounding_box()
    assert box is not None
    with page.expect_response(lambda response: "first=" in response.url):
        page.mouse.move(box["x"] + box["width"] * 0.500, box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.505, box["y"] + 60, steps=4)
        page.mouse.move(box["x"] + box["width"] * 0.505 + 20, box["y"] + 60, steps=4)
        page.mouse.up()
    xs = f"document.querySelector('{LOSS} .chart-plot').data[0].x"
    every = f"({xs}.at(-1) - {xs}[0]) / {xs}.length"
    _until(page, f"{xs}.length > 200 && {every} < 30")
    page.get_by_role("button", name="Reset zoom").click()
    _until(page, f"{every} > 90")


def test_it_shares_the_pointer_between_charts(server: Server, page: Page) -> None:
    _open(page, server, server.ask(SCENE + "made, t0 = running('hover'); show(made.pk)"))
    _drawn(page, points=200)
    page.locator(f"{LOSS} .nsewdrag").first.hover(position={"x": 100, "y": 60})
    expect(page.locator(f"{LOSS} .chart-tip-head")).to_contain_text("step")
    expect(page.locator('[data-chart="throughput"] .chart-cross')).to_be_visible()


def test_it_hides_isolates_smooths_and_keeps_the_view_in_the_address(server: Server, page: Page) -> None:
    code = "made, t0 = running('view'); points(made, t0, 'val_loss', [100, 200], [1.0, 0.9]); show(made.pk)"
    _open(page, server, server.ask(SCENE + code))
    _drawn(page, points=200)
    legend = page.locator(f"{LOSS} .chip")
    legend.first.click()
    expect(legend.first).to_have_attribute("aria-pressed", "false")
    _until(page, f"document.querySelector('{LOSS} .chart-plot').data.length === 1")
    legend.first.dblclick()
    expect(legend.first).to_have_attribute("aria-pressed", "true")
    expect(legend.nth(1)).to_have_attribute("aria-pressed", "false")
    page.locator("[name=smooth]").fill("0.6")
    page.get_by_text("Samples seen").click()
    page.locator(f'{LOSS} [data-tool="log"]').click()
    _until(page, "location.search.includes('x=samples') && location.search.includes('log=loss')")
    _until(page, f"document.querySelector('{LOSS} .chart-plot')._fullLayout.yaxis.type === 'log'")
    page.reload()
    _drawn(page, points=200)
    assert page.evaluate(f"document.querySelector('{LOSS} .chart-plot').data[0].x.at(-1)") == 200 * 128
    expect(page.locator("[name=smooth]")).to_have_value("0.6")


def test_it_offers_every_chart_as_a_table(server: Server, page: Page) -> None:
    _open(page, server, server.ask(SCENE + "made, t0 = running('table'); show(made.pk)"))
    _drawn(page, points=200)
    page.locator(f'{LOSS} [data-tool="table"]').click()
    rows = page.locator(f"{LOSS} .series-table tbody tr")
    expect(rows).to_have_count(200)
    expect(rows.first).to_contain_text("200")


def test_it_names_the_straggler(server: Server, page: Page) -> None:
    _open(page, server, server.ask(SCENE + "made, t0 = running('slow', replicas=4); show(made.pk)"))
    page.locator(".heat").scroll_into_view_if_needed()
    expect(page.locator(".heat-note")).to_contain_text("Straggler: replica 1 (worker-1, cpu:0) is at 30 %")


def test_it_shows_a_failure_with_process_and_log(server: Server, page: Page) -> None:
    code = (
        "made, t0 = job('broken', 'failed', cause='worker-1 ran out of memory.', failed_process='worker-1',"
        "log_tail='OOM when allocating <b>tensor</b>', ended=timezone.now()); show(made.pk)"
    )
    _open(page, server, server.ask(SCENE + code))
    failure = page.locator(".failure")
    expect(failure).to_contain_text("worker-1 ran out of memory.")
    expect(failure.locator("pre")).to_have_text("OOM when allocating <b>tensor</b>")
    expect(page.locator("#stop")).to_be_hidden()
    expect(page.locator(".charts-empty")).to_be_visible()


def test_it_says_why_a_job_waits_and_announces_its_end(server: Server, page: Page) -> None:
    code = "made, t0 = job('waits', 'queued', started=None, reason='waiting for 2 more devices'); show(made.pk)"
    pk = server.ask(SCENE + code)
    _open(page, server, pk)
    expect(page.locator("[data-field=phase_text]")).to_have_text("Queued: waiting for 2 more devices")
    expect(page.locator("[data-connection]")).to_have_attribute("data-status", "live")
    change = "update(state='cancelled', ended=timezone.now(), revision=2)"
    end = f"Job.objects.filter(pk=made.pk).{change}; tell(made); show(1)"
    server.ask(SCENE + f"made = Job.objects.get(pk={pk});" + end)
    expect(page.locator("[data-state-place]")).to_have_text("Cancelled")
    expect(page.locator("#announcer")).to_contain_text("waits: Cancelled")
    expect(page).to_have_title("Cancelled · waits · Lockstep")


def test_it_stops_a_job_after_one_question(server: Server, page: Page) -> None:
    pk = server.ask(SCENE + "made, t0 = running('stop me'); show(made.pk)")
    _open(page, server, pk)
    page.locator("#stop").click()
    dialog = page.locator("#stop-dialog")
    expect(dialog).to_contain_text("since its last checkpoint is lost")
    dialog.get_by_role("button", name="Keep it running").click()
    expect(dialog).to_be_hidden()
    page.locator("#stop").click()
    dialog.get_by_role("button", name="Stop the job").click()
    expect(page.locator("[data-state-place]")).to_have_text("Stopping")
    assert server.ask(f"show(Job.objects.get(pk={pk}).state)") == "stopping"


def test_it_follows_filters_and_searches_the_log(server: Server, page: Page) -> None:
    line = (
        "LogLine(job=made, attempt=1, process='worker-%d' % (n % 2), stream='stdout' if n % 10 else 'stderr',"
        "time=t0 + n, text='\\x1b[31mline %d\\x1b[0m' % n)"
    )
    code = f"made, t0 = running('logs'); LogLine.objects.bulk_create([{line} for n in range(1500)]); show(made.pk)"
    pk = server.ask(SCENE + code)
    _open(page, server, pk, "#logs")
    texts = page.locator(".log-text")
    expect(texts.last).to_have_text("line 1499")
    told = (
        f"made = Job.objects.get(pk={pk}); t0 = time.time();"
        "row = LogLine.objects.create(job=made, attempt=1, process='worker-0', stream='stdout', time=t0, text='fresh');"
        "line = Line(id=row.pk, process='worker-0', stream='stdout', time=t0, text='fresh');"
        "tell(made, lines=LogMessage(job=made.pk, lines=[line])); show(1)"
    )
    server.ask(SCENE + told)
    expect(texts.last).to_have_text("fresh")
    page.locator(".log-box").evaluate("box => { box.scrollTop = 0; }")
    _until(page, "document.querySelectorAll('.log-line').length > 600")
    expect(page.locator(".log-pill")).to_be_visible()
    page.locator(".log-pill").click()
    expect(page.locator(".log-pill")).to_be_hidden()
    page.locator("[name=q]").fill("line 777")
    expect(texts).to_have_count(1)
    expect(page.locator(".log-text mark")).to_have_text("line 777")
    page.locator("[name=q]").fill("")
    page.locator("[name=stream]").select_option("stderr")
    expect(texts.last).to_have_text("line 1490")


def test_it_opens_tabs_by_address_and_by_key(server: Server, page: Page) -> None:
    _open(page, server, server.ask(SCENE + "made, t0 = running('tabs'); show(made.pk)"), "#spec")
    expect(page.locator("#spec-text")).to_contain_text("lockstep/v1")
    page.locator("#tab-spec").press("ArrowRight")
    expect(page.locator(".timeline")).to_contain_text("Submitted by alice")
    page.go_back()
    expect(page.locator("#spec-text")).to_be_visible()


def test_its_events_tell_what_happened_while_nobody_looked(server: Server, page: Page) -> None:
    code = (
        "from webapp.jobs import history, services\n"
        "made, t0 = running('told'); services.request_pause(job=made, by=alice)\n"
        "history.note(made.pk, 'failed', at=timezone.now(), detail='worker-0 ran out of memory.'); show(made.pk)"
    )
    _open(page, server, server.ask(SCENE + code), "#events")
    told = page.locator(".timeline")
    expect(told).to_contain_text("Pause asked for by alice")
    expect(told.locator('[data-kind="failed"]')).to_contain_text("Failed: worker-0 ran out of memory.")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_can_be_used_by_everybody(server: Server, page: Page, theme: str) -> None:
    pk = server.ask(SCENE + "made, t0 = running('for all'); show(made.pk)")
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    _open(page, server, pk)
    _drawn(page, points=200)
    assert not violations(page)


@pytest.mark.parametrize("width", [390, 1280, 1680])
def test_it_needs_no_sideways_scroll(server: Server, page: Page, width: int) -> None:
    pk = server.ask(SCENE + "made, t0 = running('narrow ' + 'x' * 100, replicas=16); show(made.pk)")
    page.set_viewport_size({"width": width, "height": 844})
    _open(page, server, pk)
    _drawn(page, points=200)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_never_draws_more_than_ten_times_a_second(server: Server, page: Page) -> None:
    _open(page, server, server.ask(SCENE + "made, t0 = running('calm'); show(made.pk)"))
    _drawn(page, points=200)
    count = """async () => {
      MODULES
      const { requestDraw } = await load('schedule');
      let draws = 0;
      const one = { visible: true, held: false, draw() { draws += 1; } };
      const end = performance.now() + 1000;
      while (performance.now() < end) { requestDraw(one); await new Promise(requestAnimationFrame); }
      return draws;
    }"""
    assert 1 <= page.evaluate(count.replace("MODULES", MODULES)) <= 11


def test_it_stays_small_however_long_it_is_open(server: Server, page: Page) -> None:
    _open(page, server, server.ask(SCENE + "made, t0 = running('days'); show(made.pk)"))
    grow = """async () => {
      MODULES
      const { Series } = await load('series');
      const series = new Series('loss', null);
      for (let start = 0; start < 100000; start += 100) {
        const steps = Array.from({length: 100}, (_, i) => start + i);
        series.append({start, steps, times: steps, values: steps.map(s => s === 54321 ? 99 : s === 60000 ? 'NaN' : 1)});
      }
      const { values, count } = series;
      return {kept: values.length, count, spike: values.includes(99), nan: values.some(Number.isNaN)};
    }"""
    grown = page.evaluate(grow.replace("MODULES", MODULES))
    assert grown["count"] == 100_000 and grown["kept"] <= 6000, json.dumps(grown)
    assert grown["spike"] and grown["nan"]
