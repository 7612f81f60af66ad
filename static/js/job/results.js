// @ts-check
// The Results tab of a job that took no steps: what it measured, and the files that it left.

import { number, percent } from "../format.js";
import { artifactRow, cell, fill, noArtifacts, over } from "./checkpoints.js";

const SPLITS = ["val", "test"];
let drawn = "";

/** Fills the tables from the job message, when they have changed. */
export function showResults(panel, message) {
  const known = JSON.stringify([message.artifacts, message.latest, message.state]);
  if (known === drawn) return;
  drawn = known;
  if (message.kind === "evaluate") fill(panel, "metrics", measured(message.latest), noMetrics(message));
  else fill(panel, "artifacts", message.artifacts.map(artifactRow), noArtifacts(message));
}

function noMetrics(message) {
  return over(message) ? "This job measured nothing. Its log says how far it came." : "The metrics appear here as soon as they are measured.";
}

function measured(latest) {
  const names = Object.keys(latest).flatMap((name) => SPLITS.filter((split) => name.startsWith(`${split}_`)).map((split) => name.slice(split.length + 1)));
  return [...new Set(names)].map((name) => metricRow(name, latest));
}

function metricRow(name, latest) {
  const row = document.createElement("tr");
  const words = name.replaceAll("_", " ");
  cell(row, "Metric", words.charAt(0).toUpperCase() + words.slice(1));
  for (const split of SPLITS) {
    const value = latest[`${split}_${name}`];
    const shown = name === "accuracy" ? percent(value) : number(value);
    cell(row, split === "val" ? "Validation" : "Test", value === undefined ? "–" : shown).className = "number";
  }
  return row;
}
