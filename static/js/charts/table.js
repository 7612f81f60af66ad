// @ts-check
// The chart as a table, for screen readers and for copying.

import { describe } from "./axis.js";
import { number } from "../format.js";

const ROWS = 200;

/** Columns of a chart's table: the x of any line, ascending, against the value of each line there. */
export function rows(lines) {
  const xs = [...new Set(lines.flatMap((line) => line.xs))].sort((a, b) => a - b);
  const columns = lines.map((line) => new Map(line.xs.map((x, index) => [x, line.values[index]])));
  return xs.map((x) => [x, ...columns.map((column) => column.get(x))]);
}

/** Tab-separated text of all rows, as spreadsheets take it. */
export function asText(lines, axis) {
  const head = [axis, ...lines.map((line) => line.label)].join("\t");
  return [head, ...rows(lines).map((row) => row.map((value) => value ?? "").join("\t"))].join("\n");
}

/** A table of at most 200 rows, the newest first, with a button that copies all. */
export function build(lines, axis, title) {
  const all = rows(lines);
  const every = Math.max(1, Math.ceil(all.length / ROWS));
  const shown = all.filter((_, index) => (all.length - 1 - index) % every === 0).reverse();
  const table = document.createElement("table");
  table.className = "series-table";
  table.createCaption().textContent = every > 1 ? `${title}: ${shown.length} of ${all.length} points` : title;
  const head = table.createTHead().insertRow();
  for (const text of [axis, ...lines.map((line) => line.label)]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const [x, ...values] of shown) {
    const row = body.insertRow();
    row.insertCell().textContent = describe(x, axis).replace(/^(step|epoch) /, "");
    for (const value of values) row.insertCell().textContent = value === undefined ? "" : number(value);
  }
  return [copyButton(lines, axis), table];
}

function copyButton(lines, axis) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button small";
  button.textContent = "Copy all points";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(asText(lines, axis));
      button.textContent = "Copied";
    } catch {
      button.textContent = "The browser does not allow copying here";
    }
  });
  return button;
}
