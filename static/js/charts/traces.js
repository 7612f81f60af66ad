// @ts-check
// Lines as Plotly traces: the smoothed line, the raw one faint behind, and a mark for every value that is not a number.

import { resolve } from "./colours.js";
import { smooth } from "./smooth.js";

const MARKED_POINTS = 60;
const MOST_MARKS = 200;

/**
 * @typedef {object} Line
 * @property {string} key what legends, hiding and highlighting go by
 * @property {string} label
 * @property {string} colour may be a CSS variable
 * @property {string} [dash]
 * @property {number} [width]
 * @property {number} [opacity]
 * @property {boolean} [smooths]
 * @property {boolean} [marks] whether its NaN and infinite values are marked
 * @property {boolean} [level] whether it is one value across the whole chart
 * @property {number[]} xs
 * @property {number[]} values
 */

/** Plotly traces of `lines`. `raw` draws the unsmoothed line behind, `highlight` is the key of the line that stands out. */
export function traces(lines, { weight = 0, raw = true, highlight = null } = {}) {
  const drawn = [];
  for (const line of lines) {
    const smoothed = weight > 0 && line.smooths !== false;
    if (smoothed && raw) drawn.push(trace(line, line.values, faint(line, highlight)));
    const values = smoothed ? smooth(line.xs, line.values, weight) : line.values;
    drawn.push(trace(line, values, emphasis(line, highlight)));
  }
  // The highlighted line lies on top of the others.
  if (highlight) drawn.sort((a, b) => Number(a.meta === highlight) - Number(b.meta === highlight));
  return [...drawn, ...marks(lines)];
}

function faint(line, highlight) {
  return { width: 1, opacity: highlight && highlight !== line.key ? 0.06 : 0.22, bare: true };
}

function emphasis(line, highlight) {
  const width = line.width ?? 1.5;
  if (!highlight) return { width, opacity: line.opacity ?? 1 };
  return highlight === line.key ? { width: width + 1, opacity: 1 } : { width, opacity: 0.18 };
}

function trace(line, values, { width, opacity, bare = false }) {
  const few = !bare && values.length <= MARKED_POINTS && line.points !== false;
  const colour = resolve(line.colour);
  return {
    type: "scatter",
    mode: few ? "lines+markers" : "lines",
    x: line.xs,
    y: values.map((value) => (Number.isFinite(value) ? value : null)),
    meta: line.key,
    opacity,
    hoverinfo: "skip",
    line: { color: colour, width, dash: bare ? "solid" : line.dash ?? "solid", simplify: true },
    marker: { color: colour, size: values.length < 3 ? 6 : 4 },
    connectgaps: false,
  };
}

const KINDS = [
  { kind: "NaN", test: Number.isNaN, symbol: "x-thin-open", y: 0.95 },
  { kind: "+inf", test: (value) => value === Infinity, symbol: "triangle-up-open", y: 0.97 },
  { kind: "-inf", test: (value) => value === -Infinity, symbol: "triangle-down-open", y: 0.03 },
];

// A NaN has no height: it is marked where it happened, on the axis that runs from the bottom to the top of the plot.
function marks(lines) {
  const colour = resolve("var(--chart-mark)");
  const found = [];
  for (const { test, symbol, y } of KINDS) {
    const runs = lines.filter((line) => line.marks !== false).flatMap((line) => runsOf(line, test)).slice(0, MOST_MARKS);
    if (!runs.length) continue;
    const common = { type: "scatter", yaxis: "y2", hoverinfo: "skip" };
    const ends = runs.flatMap(([from, to]) => [from, to, null]);
    found.push(
      { ...common, mode: "lines", x: ends, y: ends.map((x) => (x === null ? null : y)), line: { color: colour, width: 2 } },
      {
        ...common, mode: "markers", x: runs.map(([from]) => from), y: runs.map(() => y), cliponaxis: false,
        marker: { symbol, color: colour, size: 8, line: { width: 1.75, color: colour } },
      },
    );
  }
  return found;
}

/** [first x, last x] of each stretch of points that pass `test`. */
function runsOf(line, test) {
  const runs = [];
  let open = false;
  line.values.forEach((value, index) => {
    if (!test(value)) open = false;
    else if (open) runs[runs.length - 1][1] = line.xs[index];
    else runs.push([line.xs[index], line.xs[index]]);
    open = test(value);
  });
  return runs;
}

/** What of a line's values is not a number, in words: [{short: "train: NaN from step 120", long: "..., 34 points"}]. */
export function oddities(line, where) {
  return KINDS.flatMap(({ kind, test }) => {
    const first = line.values.findIndex((value) => test(value));
    if (first < 0) return [];
    const count = line.values.filter((value) => test(value)).length;
    const short = `${line.label}: ${kind} from ${where(line.xs[first])}`;
    return [{ short, long: `${short}, ${count} ${count === 1 ? "point" : "points"}` }];
  });
}
