// @ts-check
// What is special about many replicas: how their lines are drawn, and which of them straggles.

import { columns } from "../charts/heat.js";
import { DASHES, PALETTE, seriesColour } from "../charts/colours.js";

/** Up to this many each replica has a line of its own; above, lowest, median and highest stand for all. */
const SINGLE = 12;
const GRID = 240;
const RECENT = 10;
const FAR = 20;

/** Lines of one per-replica metric. `entries` are [{replica, label, xs, values}]. */
export function replicaLines(entries, [from, to]) {
  const spelled = entries.length <= 4 ? "replica " : "";
  if (entries.length <= SINGLE) return entries.map((entry) => single({ ...entry, label: `${spelled}${entry.label}` }));
  const grids = entries.map((entry) => columns(entry.xs, entry.values, [from, to], GRID));
  const xs = Array.from({ length: GRID }, (_, index) => from + ((index + 0.5) * (to - from)) / GRID);
  const sorted = xs.map((_, index) => grids.map((grid) => grid[index]).filter(Number.isFinite).sort((a, b) => a - b));
  const kept = sorted.map((list, index) => (list.length ? index : -1)).filter((index) => index >= 0);
  const pick = (rank) => kept.map((index) => sorted[index][Math.round((sorted[index].length - 1) * rank)]);
  const x = kept.map((index) => xs[index]);
  const common = { smooths: false, marks: false, points: false, xs: x };
  return [
    everyOne(entries),
    { ...common, key: "highest", label: "highest", colour: "var(--series-3)", values: pick(1), width: 1.25 },
    { ...common, key: "median", label: "median", colour: "var(--series-1)", values: pick(0.5), width: 2 },
    { ...common, key: "lowest", label: "lowest", colour: "var(--series-2)", values: pick(0), width: 1.25 },
  ];
}

function single({ replica, label, detail, xs, values }) {
  return {
    key: `replica ${replica}`, label, detail, colour: seriesColour(replica + 1), dash: DASHES[Math.floor(replica / PALETTE)],
    smooths: false, points: false, marks: false, width: 1.25, xs, values,
  };
}

// One trace with gaps for all replicas costs a browser what one line costs.
function everyOne(entries) {
  const xs = [];
  const values = [];
  for (const entry of entries) {
    xs.push(...entry.xs, entry.xs[entry.xs.length - 1]);
    values.push(...entry.values, NaN);
  }
  const look = { colour: "var(--chart-text)", opacity: 0.22, width: 0.75 };
  return { ...look, key: "every", label: "every replica", silent: true, smooths: false, marks: false, points: false, xs, values };
}

/**
 * The replica whose recent utilization is farthest from the others', if any stands out.
 * @param {{label: string, detail: string, values: number[]}[]} rows
 * @returns {{row: number, text: string} | null}
 */
export function straggler(rows) {
  if (rows.length < 2) return null;
  const recent = rows.map((row) => mean(row.values.slice(-RECENT)));
  const known = recent.filter(Number.isFinite).sort((a, b) => a - b);
  if (known.length < 2) return null;
  let row = -1;
  let farthest = 0;
  recent.forEach((value, index) => {
    const apart = Number.isFinite(value) ? Math.abs(value - others(recent, index)) : 0;
    if (apart > farthest) [row, farthest] = [index, apart];
  });
  const [value, rest] = [recent[row], others(recent, row)];
  if (row < 0 || farthest < FAR || farthest < rest * 0.25) return null;
  const [one, many] = [Math.round(value), Math.round(rest)];
  const others_ = rows.length === 2 ? "the other is" : "the others are";
  const text = value < rest
    ? `Straggler: ${rows[row].detail} is at ${one} %, ${others_} at ${many} %.`
    : `Straggler: ${rows[row].detail} is at ${one} % while ${others_} at ${many} %, as if waiting for it.`;
  return { row, text };
}

function others(values, index) {
  const rest = values.filter((value, at) => at !== index && Number.isFinite(value)).sort((a, b) => a - b);
  const middle = Math.floor(rest.length / 2);
  return rest.length % 2 ? rest[middle] : (rest[middle - 1] + rest[middle]) / 2;
}

function mean(values) {
  const finite = values.filter(Number.isFinite);
  return finite.length ? finite.reduce((sum, value) => sum + value, 0) / finite.length : NaN;
}
