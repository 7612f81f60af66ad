// @ts-check
// The compare page: its address holds the view, its charts draw every job, its table follows the running ones.

import { badge, connect } from "../socket.js";
import { Chart } from "../charts/chart.js";
import { jobStyles } from "../charts/colours.js";
import { View } from "../charts/view.js";
import { pageData } from "../job/request.js";
import { ENDED } from "../job/strip.js";
import { bindToolbar, fromAddress, toAddress } from "../job/toolbar.js";
import { Curves, keyOf } from "./curves.js";
import { Picker } from "./picker.js";
import { Results } from "./results.js";
import { bindHighlight, bindRuns, fillSwatches, markNearest, showState } from "./runs.js";

/** Above this many jobs the raw lines behind the smoothed ones would only be fog. */
const MOST_RAW = 20;

const page = /** @type {HTMLElement} */ (document.querySelector(".compare"));
const part = (selector) => /** @type {HTMLElement} */ (page.querySelector(selector));
const facts = pageData("compare-jobs");
const ids = facts.map((job) => job.id);
const styles = jobStyles(ids);

function goTo(chosen) {
  const query = new URLSearchParams(location.search);
  query.set("jobs", chosen.join(","));
  location.assign(`${location.pathname}?${query.toString().replaceAll("%2C", ",")}`);
}

new Picker(part(".picker"), new Set(ids), (id) => goTo([...ids, id]));
fillSwatches(page, styles);
if (ids.length) start();

function start() {
  const view = new View(fromAddress());
  const charts = [];
  let known = "";
  const curves = new Curves(facts, styles, page.dataset.curves, {
    onPoints: (metrics) => {
      page.dataset.loaded = "true";
      const extent = String(curves.extent(view.axis, view.hidden));
      for (const chart of charts) if (extent !== known || metrics.includes(chart.panel.key)) chart.stale();
      known = extent;
    },
    onTrouble: trouble,
  });
  for (const panel of pageData("compare-panels")) {
    const element = part(`[data-chart="${panel.key}"]`);
    charts.push(new Chart(element, panel, view, source(curves, panel, view)));
  }
  const results = new Results(part("#results"), () => `${page.dataset.table}${location.search}`, () => fillSwatches(page, styles));
  bindControls(view, results);
  bindZoom(view, curves);
  listen(view, curves, results);
}

function source(curves, panel, view) {
  const lines = (hidden) => (curves.want(panel.key) ? curves.lines(panel.key, { axis: view.axis, range: view.range, hidden }) : []);
  return {
    lines: () => lines(view.hidden),
    all: () => lines(new Set()),
    extent: () => curves.extent(view.axis, view.hidden),
    empty: () => (curves.want(panel.key) ? nothing(panel, view) : "Loading…"),
    legend: false,
    raw: () => ids.length <= MOST_RAW,
  };
}

function nothing(panel, view) {
  if (ids.every((id) => view.hidden.has(keyOf(id)))) return "Every job is hidden. Click its name on the left to show it.";
  return `None of these jobs has reported ${panel.title.toLowerCase()}.`;
}

function bindControls(view, results) {
  const metrics = /** @type {HTMLInputElement[]} */ ([...page.querySelectorAll('.metric-menu input[type="checkbox"]')]);
  const chosen = () => metrics.filter((box) => box.checked).map((box) => box.value);
  const show = () => {
    for (const box of metrics) part(`[data-chart="${box.value}"]`).hidden = !box.checked;
  };
  for (const box of metrics) {
    box.addEventListener("change", () => {
      show();
      toAddress(view, "push", { metrics: chosen().join(",") });
      results.refreshSoon(0);
    });
  }
  bindToolbar(part(".chart-bar"), view, (mode) => toAddress(view, mode));
  view.addEventListener("log", () => toAddress(view, "push"));
  bindRuns(part(".runs-list"), view, (id) => goTo(ids.filter((one) => one !== id)));
  for (const place of [part(".runs-list"), part("#results")]) bindHighlight(place, view);
  markNearest(part(".runs-list"), view);
  part("#only-differing").addEventListener("change", (event) => part(".spec-table").classList.toggle("is-all", !event.target.checked));
  part("#all-figures").addEventListener("change", (event) => part("#results").classList.toggle("is-all", event.target.checked));
  addEventListener("popstate", () => {
    const query = new URLSearchParams(location.search);
    if ((query.get("jobs") ?? "") !== page.dataset.asked) {
      location.reload();
      return;
    }
    const { axis, smooth, log } = fromAddress();
    const wanted = query.get("metrics")?.split(",") ?? page.dataset.metrics.split(",");
    for (const box of metrics) box.checked = wanted.includes(box.value);
    show();
    view.log = new Set(log);
    view.setSmooth(smooth);
    view.setAxis(axis);
    results.refreshSoon(0);
  });
}

function bindZoom(view, curves) {
  let due = 0;
  view.addEventListener("zoom", () => {
    clearTimeout(due);
    curves.coarse();
    if (view.range) due = window.setTimeout(() => curves.refine(view.axis, view.range, view.hidden), 150);
  });
}

function listen(view, curves, results) {
  const live = new Set(facts.filter((job) => job.live).map((job) => job.id));
  if (!live.size) return;
  let wasLive = null;
  const shown = badge(document.querySelector("[data-connection]"));
  connect(`/ws/t/${document.body.dataset.team}/?points=${[...live].join(",")}`, {
    onMessage: (message) => {
      if (message.type === "points") {
        curves.receive(message);
        if (live.has(message.job)) results.refreshSoon();
      }
      if (message.type === "gap") curves.reload();
      if (message.type === "row" && live.has(message.id)) {
        showState(part(".runs-list"), message, page);
        if (ENDED.has(message.state)) results.refreshSoon();
      }
    },
    onStatus: (status, age) => {
      if (status === "live" && wasLive === false) curves.reload();
      if (status !== "connecting") wasLive = status === "live";
      shown(status, age);
    },
  });
}

function trouble(text) {
  const notice = part(".job-trouble");
  notice.hidden = !text;
  notice.querySelector("span").textContent = text;
}
