// @ts-check
// The Checkpoints tab: the trained model's files and the states that a job can go on from, each with where it lies.

import { bytes, duration, integer, number, writeTime } from "../format.js";

const TELLING = ["val_loss", "val_accuracy", "val_mean_absolute_error", "loss", "accuracy", "mean_absolute_error"];
const SHOWN = 3;
const actions = /** @type {HTMLTemplateElement} */ (document.getElementById("kept-actions"));
let drawn = "";

/** Fills both tables from the job message, when they have changed. */
export function showCheckpoints(panel, message) {
  const known = JSON.stringify([message.artifacts, message.checkpoints, message.state, message.saving]);
  if (known === drawn) return;
  drawn = known;
  fill(panel, "artifacts", message.artifacts.map(artifactRow), noArtifacts(message));
  fill(panel, "checkpoints", message.checkpoints.map(checkpointRow), noCheckpoints(message));
}

export function fill(panel, name, rows, nothing) {
  const frame = panel.querySelector(`[data-${name}]`);
  const note = panel.querySelector(`[data-no-${name}]`);
  frame.querySelector("tbody").replaceChildren(...rows);
  frame.hidden = !rows.length;
  note.hidden = rows.length > 0;
  note.textContent = nothing;
}

export const over = (message) => ["succeeded", "failed", "cancelled"].includes(message.state);

export function noArtifacts(message) {
  if (message.kind !== "train") return over(message) ? "This job left no file." : "The file appears here when it is whole.";
  return over(message) ? "This job left no trained model." : "The trained model is saved when the job has done all its steps.";
}

function noCheckpoints(message) {
  if (over(message)) return "This job left no checkpoint, so no job can go on from it.";
  return message.can_save ? "None yet. Pausing writes one, and so does Checkpoint now." : "None yet. Pausing a running job writes one.";
}

export function artifactRow(one) {
  const row = document.createElement("tr");
  cell(row, "File", one.name).className = "mono";
  cell(row, "Size", bytes(one.bytes)).className = "number";
  where(row, one);
  act(row, one, "");
  return row;
}

function checkpointRow(one) {
  const row = document.createElement("tr");
  cell(row, "Step", integer(one.step)).className = "number";
  cell(row, "Samples", one.samples_seen ? integer(one.samples_seen) : "–").className = "number";
  const figures = cell(row, "Metrics", metrics(one.metrics)).firstElementChild;
  if (one.best) figures?.prepend(Object.assign(document.createElement("span"), { className: "badge-best", textContent: "best" }));
  cell(row, "Size", one.bytes ? bytes(one.bytes) : "–").className = "number";
  cell(row, "Written in", one.seconds ? duration(one.seconds) : "–").className = "number";
  age(row, one.created);
  where(row, one);
  act(row, one, one.name);
  return row;
}

function metrics(values) {
  const names = TELLING.filter((name) => name in values).slice(0, SHOWN);
  return names.map((name) => `${name.replaceAll("_", " ")} ${number(values[name])}`).join(", ") || "–";
}

function age(row, created) {
  const made = cell(row, "Age", created ? "" : "–");
  made.className = "number";
  if (!created) return;
  const time = document.createElement("time");
  time.dateTime = created;
  time.dataset.ago = "";
  writeTime(time);
  made.firstElementChild?.replaceWith(time);
}

function where(row, one) {
  const words = one.stored ? "artifact store" : one.problem ? `only on ${one.host}` : "on its way to the store";
  const made = cell(row, "Where", words);
  made.classList.add("where");
  if (one.stored || !one.problem) return;
  for (const text of [one.path, one.problem]) {
    made.append(Object.assign(document.createElement("span"), { className: "second", textContent: text }));
  }
}

function act(row, one, checkpoint) {
  const made = row.insertCell();
  if (!one.stored) return;
  const box = document.createElement("div");
  box.className = "row-actions";
  box.append(actions.content.cloneNode(true));
  box.querySelector("[data-download]").href = one.url;
  const further = /** @type {HTMLAnchorElement | null} */ (box.querySelector("[data-continue]"));
  const uses = /** @type {HTMLAnchorElement[]} */ ([...box.querySelectorAll("[data-use]")]);
  if (further && checkpoint) {
    further.href = further.dataset.base + encodeURIComponent(checkpoint);
    for (const use of uses) use.href = further.href + use.dataset.use;
  } else for (const link of [further, ...uses]) link?.remove();
  made.append(box);
}

export function cell(row, label, text) {
  const made = row.insertCell();
  made.dataset.label = label;
  made.append(Object.assign(document.createElement("span"), { textContent: text }));
  return made;
}
