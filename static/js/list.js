// @ts-check
// The jobs page: rows that follow the team's socket, filter and sort in the address, a selection to compare.

import { bindColumns } from "./columns.js";
import { integer } from "./format.js";
import { bind } from "./keys.js";
import { finishRow, makeRow, writeRow } from "./rows.js";
import { Selection } from "./selection.js";
import { badge, connect } from "./socket.js";
import { announce } from "./toast.js";

const SIZE = 50;
const LARGEST = 500;
const page = /** @type {HTMLElement} */ (document.getElementById("jobs"));
const find = (selector) => /** @type {HTMLElement} */ (page.querySelector(selector));
const body = find("[data-body]");
const frame = find(".jobs-frame");
const filter = /** @type {HTMLInputElement} */ (document.getElementById("filter"));
const fresh = find("[data-fresh]");
const selection = new Selection(page, body);

/** @type {Map<string, HTMLElement>} */
const lines = new Map();
/** Jobs that came while somebody was reading: they wait behind a button. */
const waiting = new Map();
let total = Number(page.dataset.total);
let newest = 0;
let timer = 0;
let asked = 0;

bindColumns(find(".column-menu"), find(".jobs-table"));
for (const line of body.children) adopt(/** @type {HTMLElement} */ (line));

function adopt(line) {
  lines.set(line.dataset.id ?? "", line);
  newest = Math.max(newest, Number(line.dataset.id));
  finishRow(line);
}

// Live ----------------------------------------------------------------------------------------------------------------

function receive(message) {
  if (message.type === "gap") refresh();
  else if (message.type === "row") receiveRow(message);
}

function receiveRow(row) {
  const line = lines.get(String(row.id));
  if (line) {
    if (writeRow(line, row)) announce(`${row.name}: ${row.state_label}`);
  } else if (row.id > newest || waiting.has(row.id)) {
    arrive(row);
  }
}

/** A new job: in at once while nobody reads further down, else behind a button, so that nothing jumps. */
function arrive(row) {
  const { q, sort } = view();
  if (q || sort || Number(page.dataset.page) > 1) return;
  waiting.set(row.id, row);
  const reading = scrollY > 8 || body.matches(":hover") || body.contains(document.activeElement) || selection.size > 0;
  if (reading && lines.size) offer();
  else admit();
}

function offer() {
  fresh.textContent = waiting.size === 1 ? "1 new job" : `${integer(waiting.size)} new jobs`;
  fresh.hidden = false;
}

function admit() {
  for (const row of [...waiting.values()].sort((a, b) => a.id - b.id)) {
    const line = makeRow(row);
    body.prepend(line);
    adopt(line);
    total += 1;
  }
  waiting.clear();
  fresh.hidden = true;
  foot();
}

let connected = false;
let lost = false;
const showStatus = badge(document.querySelector("[data-connection]"));
connect(page.dataset.socket ?? "", {
  onMessage: receive,
  onStatus(status, age) {
    showStatus(status, age);
    if (status === "live" && lost) refresh();
    if (status === "live") connected = true;
    lost = connected && status !== "live";
  },
});

// Filter, sort, older -------------------------------------------------------------------------------------------------

function view() {
  const asked = new URLSearchParams(location.search);
  return { q: asked.get("q") ?? "", sort: asked.get("sort") ?? "" };
}

/** The address of another view of the table; what is default is left out. */
function address({ q, sort }) {
  const search = new URLSearchParams();
  if (q) search.set("q", q);
  if (sort) search.set("sort", sort);
  return `${location.pathname}${search.size ? `?${search}` : ""}`;
}

function turn(change, { push = true } = {}) {
  const url = address({ ...view(), ...change });
  if (push) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  mark();
  load(SIZE, true);
}

/** Fetches the first `size` rows of the view; `renew` puts them in place of what is there. */
async function load(size, renew, number = 1) {
  const mine = ++asked;
  const { q, sort } = view();
  const search = new URLSearchParams({ q, size: String(size), page: String(number), ...(sort && { sort }) });
  frame.setAttribute("aria-busy", "true");
  const response = await fetch(`${page.dataset.rows}?${search}`).catch(() => null);
  if (mine !== asked) return;
  frame.setAttribute("aria-busy", "false");
  const answer = await response?.json().catch(() => null);
  if (mine !== asked) return;
  if (!response?.ok || !answer) complain(answer?.problem);
  else show(answer, renew);
}

function show(answer, renew) {
  complain(null, false);
  total = answer.total;
  const kept = answer.rows.map((row) => {
    const line = lines.get(String(row.id));
    if (!line) return makeRow(row);
    writeRow(line, row);
    return line;
  });
  if (renew) {
    lines.clear();
    body.replaceChildren(...kept);
    waiting.clear();
    fresh.hidden = true;
  } else {
    body.append(...kept.filter((line) => !line.isConnected));
  }
  for (const line of kept) adopt(line);
  selection.prune();
  foot();
}

function refresh() {
  load(Math.min(LARGEST, Math.max(SIZE, lines.size)), true);
}

function complain(problem, failed = true) {
  const element = find("#filter-error");
  element.hidden = !failed;
  element.textContent = problem
    ? `${problem.path}: ${problem.value ?? ""} ${problem.message}. ${problem.remedy}`
    : "The server does not answer. The rows below are the last that it sent.";
  filter.toggleAttribute("aria-invalid", false);
  if (failed && problem) filter.setAttribute("aria-invalid", "true");
}

function foot() {
  const none = lines.size === 0;
  frame.hidden = none;
  find("[data-foot]").hidden = none;
  find("[data-shown]").textContent = `${integer(lines.size)} of ${integer(Math.max(total, lines.size))}`;
  find("[data-older]").hidden = lines.size >= total;
  find('[data-empty="none"]').hidden = !none || Boolean(view().q);
  find('[data-empty="filter"]').hidden = !none || !view().q;
}

function mark() {
  const { q, sort } = view();
  const key = (sort || "-created").replace(/^-/, "");
  const falling = (sort || "-created").startsWith("-");
  for (const head of page.querySelectorAll("[data-sort-key]")) {
    const own = head.getAttribute("data-sort-key") === key;
    head.setAttribute("aria-sort", own ? (falling ? "descending" : "ascending") : "none");
  }
  for (const link of page.querySelectorAll("[data-group]")) {
    const group = link.getAttribute("data-group");
    const here = group ? q.split(/\s+/).includes(`state:${group}`) : !/(^|\s)state:/.test(q);
    link.toggleAttribute("aria-current", here);
    if (here) link.setAttribute("aria-current", "true");
  }
}

/** The sort that a click on a head means: falling first, but for names. */
function nextSort(key) {
  const now = view().sort || "-created";
  if (now === `-${key}`) return key;
  return key === "name" && now !== key ? key : `-${key}`;
}

filter.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => turn({ q: filter.value.trim() }, { push: false }), 200);
});
find(".jobs-tools").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  turn({ q: filter.value.trim() });
});
page.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const link = target?.closest("[data-sort], [data-group], [data-clear-filter]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  if (link.matches("[data-sort]")) {
    turn({ sort: nextSort(link.closest("th")?.getAttribute("data-sort-key")) });
    return;
  }
  const group = link.getAttribute("data-group");
  const words = link.matches("[data-group]") ? filter.value.split(/\s+/).filter((word) => word && !word.startsWith("state:")) : [];
  filter.value = [...(group ? [`state:${group}`] : []), ...words].join(" ");
  turn({ q: filter.value });
});
find("[data-older]").addEventListener("click", () => load(SIZE, false, Math.floor(lines.size / SIZE) + 1));
fresh.addEventListener("click", admit);
addEventListener("popstate", () => {
  filter.value = view().q;
  mark();
  load(SIZE, true);
});

body.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  if (!target || target.closest("a, input, button, .col-check") || String(getSelection())) return;
  const link = /** @type {HTMLAnchorElement | null} */ (target.closest("tr")?.querySelector("[data-link]"));
  if (link && (event.metaKey || event.ctrlKey)) open(link.href);
  else link?.click();
});

// Keys ----------------------------------------------------------------------------------------------------------------

function move(by) {
  const links = [...body.querySelectorAll("[data-link]")];
  const here = links.indexOf(document.activeElement?.closest("tr")?.querySelector("[data-link]") ?? links[-1]);
  const next = /** @type {HTMLElement} */ (links[Math.max(0, Math.min(links.length - 1, here + by))]);
  next?.focus({ preventScroll: true });
  next?.closest("tr")?.scrollIntoView({ block: "nearest" });
}

for (const key of ["j", "ArrowDown"]) bind(key, "Next job", () => move(1));
for (const key of ["k", "ArrowUp"]) bind(key, "Previous job", () => move(-1));
bind("Enter", "Open the job", () => document.activeElement?.closest("tr")?.querySelector("a")?.click());
bind("x", "Select the job", () => selection.toggle(document.activeElement?.closest("tr")));
bind("c", "Compare the selected", () => selection.compare());
bind("/", "Filter", () => filter.select());
bind("Escape", "Clear the selection", () => selection.clear());
filter.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !filter.value) filter.blur();
});
mark();
foot();
