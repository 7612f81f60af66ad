// @ts-check
// The lines of the jobs table: made of the page's template, written cell by cell and only where something changed.

import { compact, duration, integer, nonFinite, number, parse, percent, writeTime } from "./format.js";
import { drawSpark } from "./spark.js";

const template = /** @type {HTMLTemplateElement} */ (document.getElementById("row"));

/** A new line for `row` (a `row` message). */
export function makeRow(row) {
  const line = /** @type {HTMLElement} */ (template.content.firstElementChild?.cloneNode(true));
  line.dataset.revision = "-1";
  writeRow(line, row);
  return line;
}

/** Brings a line up to date; an older message than the one it shows changes nothing. Returns whether the state changed. */
export function writeRow(line, row) {
  if (Number(line.dataset.revision) > row.revision) return false;
  const turned = line.dataset.state !== row.state;
  Object.assign(line.dataset, { id: row.id, revision: row.revision, state: row.state });
  if (turned) writeState(line, row);
  writeName(line, row);
  const cells = {
    "[data-dataset]": row.dataset,
    "[data-model]": row.kind === "train" ? row.model : `${row.kind} ${row.model}`,
    "[data-strategy]": row.strategy.replaceAll("_", " "),
    "[data-replicas]": `${integer(row.replicas)} replica${row.replicas === 1 ? "" : "s"}`,
    "[data-percent]": percent(row.progress, 0),
    "[data-eta]": pace(row),
    "[data-loss]": number(row.loss),
    "[data-accuracy]": percent(row.accuracy),
    "[data-throughput]": compact(row.throughput),
    "[data-owner]": row.owner,
  };
  for (const [selector, text] of Object.entries(cells)) write(line.querySelector(selector), text);
  line.querySelector("progress").value = row.progress;
  writeLoss(line, row);
  const time = line.querySelector("time");
  time.setAttribute("datetime", row.created);
  writeTime(time);
  return turned;
}

/** What only scripts can draw on a line that the server wrote. */
export function finishRow(line) {
  const svg = line.querySelector(".spark");
  if (svg.dataset.spark) drawSpark(svg, JSON.parse(svg.dataset.spark));
  markOdd(line.querySelector("[data-loss]"));
}

function writeState(line, row) {
  const badge = line.querySelector(".state");
  badge.dataset.state = row.state;
  badge.querySelector("[data-word]").textContent = row.state_label;
  badge.querySelector("use").setAttribute("href", `${document.documentElement.dataset.icons}#state-${row.state}`);
}

function writeName(line, row) {
  const link = line.querySelector("[data-link]");
  if (link.getAttribute("href") !== row.url) link.href = row.url;
  write(link, row.name);
  link.title = row.name;
  const phase = line.querySelector("[data-phase]");
  write(phase, row.phase_text);
  phase.title = row.phase_text;
  line.querySelector("[data-check]").setAttribute("aria-label", `Select ${row.name}`);
}

function writeLoss(line, row) {
  drawSpark(line.querySelector(".spark"), row.spark);
  const loss = parse(row.loss);
  line.querySelector("[data-loss]").classList.toggle("odd", loss !== null && nonFinite(loss) !== null);
}

function markOdd(element) {
  element.classList.toggle("odd", /NaN|∞/.test(element.textContent));
}

function pace(row) {
  if (row.eta_seconds !== null) return `${duration(row.eta_seconds)} left`;
  if (row.started && row.ended) return `in ${duration((Date.parse(row.ended) - Date.parse(row.started)) / 1000)}`;
  return "";
}

function write(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}
