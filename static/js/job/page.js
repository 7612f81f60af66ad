// @ts-check
// The live job page: wires the job's message, series and logs to what is on the page.

import { badge } from "../socket.js";
import { integer, keepTimes } from "../format.js";
import { SeriesSet } from "../charts/series.js";
import { View } from "../charts/view.js";
import { announce, toast } from "../toast.js";
import { bindCopy, bindStop, bindVerb } from "./actions.js";
import { JobCharts } from "./charts.js";
import { showCheckpoints } from "./checkpoints.js";
import { Feed } from "./feed.js";
import { TabIcon } from "./icon.js";
import { Logs } from "./logs.js";
import { showProcesses } from "./processes.js";
import { pageData } from "./request.js";
import { showResults } from "./results.js";
import { ENDED, Strip } from "./strip.js";
import { Tabs } from "./tabs.js";
import { Timeline } from "./timeline.js";
import { bindToolbar, fromAddress, toAddress } from "./toolbar.js";

const page = /** @type {HTMLElement} */ (document.querySelector(".job"));
const part = (selector) => /** @type {HTMLElement} */ (page.querySelector(selector));
let message = pageData("job-message");
let tab = "charts";

const verbs = /** @type {HTMLFormElement[]} */ ([...page.querySelectorAll("form[data-verb]")]);
const set = new SeriesSet();
const view = new View(fromAddress());
const strip = new Strip(page, announce);
const icon = new TabIcon();
const logs = new Logs(part("#panel-logs"), message.url);
const timeline = new Timeline(part("#panel-events ol"), part("#panel-events .empty"));
const charts = new JobCharts(part(".chart-grid"), pageData("job-figures"), set, view, message);

function showMessage(newer) {
  if (newer.revision < message.revision) return;
  // An attempt that goes on from a checkpoint has cut the curves there.
  const cut = newer.segment !== message.segment;
  message = newer;
  if (cut) feed.load();
  strip.show(message);
  icon.show(message);
  charts.setMessage(message);
  logs.setProcesses(message.processes.map((one) => one.name));
  const stop = /** @type {HTMLButtonElement | null} */ (document.querySelector("#stop"));
  if (stop) {
    stop.hidden = ENDED.has(message.state);
    stop.disabled = !message.can_stop;
  }
  showVerbs();
  showTab();
}

function showVerbs() {
  const may = { pause: message.can_pause, resume: message.can_resume, save: message.can_save };
  for (const form of verbs) form.hidden = !may[form.dataset.verb];
  const words = (verb) => verbs.find((form) => form.dataset.verb === verb)?.querySelector("[data-words]");
  const [resume, save] = [words("resume"), words("save")];
  if (resume) resume.textContent = `Resume from step ${integer(message.going_on_from)}`;
  if (save) save.textContent = message.saving ? "Saving…" : "Checkpoint now";
  save?.closest("button").toggleAttribute("disabled", message.saving);
  const count = page.querySelector("[data-count=checkpoints]");
  if (count) count.textContent = String(message.checkpoints.length);
}

// Tables behind a closed tab are not worth a redraw; they are drawn when it opens.
function showTab() {
  if (tab === "charts" && message.kind !== "train") showResults(part("#panel-charts"), message);
  if (tab === "replicas") showProcesses(part("#panel-replicas"), message, set);
  if (tab === "checkpoints") showCheckpoints(part("#panel-checkpoints"), message);
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
for (const form of verbs) bindVerb(form, toast, showMessage);
bindCopy(part("#copy-spec"), part("#spec-text"));
keepTimes();
showMessage(message);
feed.start();
