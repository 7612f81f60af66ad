// @ts-check
// The live job page: wires the job's message, series and logs to what is on the page.

import { badge } from "../socket.js";
import { keepTimes } from "../format.js";
import { SeriesSet } from "../charts/series.js";
import { View } from "../charts/view.js";
import { announce, toast } from "../toast.js";
import { bindCopy, bindStop } from "./actions.js";
import { JobCharts } from "./charts.js";
import { Feed } from "./feed.js";
import { TabIcon } from "./icon.js";
import { Logs } from "./logs.js";
import { showProcesses } from "./processes.js";
import { pageData } from "./request.js";
import { ENDED, Strip } from "./strip.js";
import { Tabs } from "./tabs.js";
import { Timeline } from "./timeline.js";
import { bindToolbar, fromAddress, toAddress } from "./toolbar.js";

const page = /** @type {HTMLElement} */ (document.querySelector(".job"));
const part = (selector) => /** @type {HTMLElement} */ (page.querySelector(selector));
let message = pageData("job-message");
let tab = "charts";

const set = new SeriesSet();
const view = new View(fromAddress());
const strip = new Strip(page, announce);
const icon = new TabIcon();
const logs = new Logs(part("#panel-logs"), message.url);
const timeline = new Timeline(part("#panel-events ol"), part("#panel-events .empty"));
const charts = new JobCharts(part(".chart-grid"), pageData("job-figures"), set, view, message);

function showMessage(newer) {
  if (newer.revision < message.revision) return;
  message = newer;
  strip.show(message);
  icon.show(message);
  charts.setMessage(message);
  timeline.note(message);
  logs.setProcesses(message.processes.map((one) => one.name));
  const stop = /** @type {HTMLButtonElement | null} */ (document.querySelector("#stop"));
  if (stop) {
    stop.hidden = ENDED.has(message.state);
    stop.disabled = !message.can_stop;
  }
  showTab();
}

// Tables behind a closed tab are not worth a redraw; they are drawn when it opens.
function showTab() {
  if (tab === "replicas") showProcesses(part("#panel-replicas"), message, set);
  if (tab === "events") timeline.show(message, set);
}

let tableDue = 0;
function showPoints() {
  charts.stale();
  if (!page.dataset.loaded) showTab();
  page.dataset.loaded = "true";
  if (tab === "charts" || tableDue) return;
  tableDue = window.setTimeout(() => {
    tableDue = 0;
    showTab();
  }, 1000);
}

const shown = badge(document.querySelector("[data-connection]"));
const names = [...new Set([...pageData("job-names"), ...Object.keys(message.latest)])];
const feed = new Feed({ id: message.id, url: message.url, names, replicas: message.replicas }, set, {
  onPoints: showPoints,
  onJob: showMessage,
  onLog: (lines) => logs.push(lines),
  onLogGap: () => logs.filled && logs.following && logs.reload(),
  onStatus: shown,
  onTrouble: (text) => {
    part(".job-trouble").hidden = !text;
    part(".job-trouble span").textContent = text;
  },
});

new Tabs(part(".tabs"), (name) => {
  tab = name;
  logs.setOpen(name === "logs");
  showTab();
});
bindToolbar(part(".chart-bar"), view, (mode) => toAddress(view, mode));
view.addEventListener("log", () => toAddress(view, "push"));
let zoomed = 0;
view.addEventListener("zoom", () => {
  clearTimeout(zoomed);
  feed.coarse();
  if (view.range) zoomed = window.setTimeout(() => feed.refine(...charts.window()), 150);
});
addEventListener("popstate", () => {
  const { axis, smooth, log } = fromAddress();
  view.log = new Set(log);
  view.setSmooth(smooth);
  view.setAxis(axis);
});
const stop = document.querySelector("#stop");
if (stop) bindStop(stop, document.querySelector("#stop-dialog"), toast);
bindCopy(part("#copy-spec"), part("#spec-text"));
keepTimes();
showMessage(message);
feed.start();
