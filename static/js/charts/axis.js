// @ts-check
// The x axis: step, epoch, samples seen or seconds since the start, and the way back to steps.

import { clock } from "./numbers.js";

export const AXES = { step: "step", epoch: "epoch", samples: "samples seen", time: "time" };

/** One job's scale: how steps become epochs, samples and seconds. `origin` is the time of its start, seconds. */
export class Scale {
  constructor(stepsPerEpoch, globalBatch, origin) {
    this.stepsPerEpoch = stepsPerEpoch || 1;
    this.globalBatch = globalBatch || 1;
    this.origin = origin;
  }

  factor(axis) {
    if (axis === "epoch") return 1 / this.stepsPerEpoch;
    return axis === "samples" ? this.globalBatch : 1;
  }

  /** x of every point of `points` ({steps, times}). */
  xs(points, axis) {
    if (axis === "time") return points.times.map((time) => time - this.origin);
    const factor = this.factor(axis);
    return factor === 1 ? points.steps : points.steps.map((step) => step * factor);
  }

  /** The step at x; `points` say which step was when. */
  stepAt(x, axis, points) {
    if (axis !== "time") return x / this.factor(axis);
    if (!points || !points.times.length) return 0;
    return points.steps[Math.min(lowerBound(points.times, x + this.origin), points.steps.length - 1)];
  }
}

/** Index of the first entry of the ascending `list` that is not below `value`; its length when all are. */
export function lowerBound(list, value) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Index of the entry of the ascending `list` nearest to `value`, -1 for an empty list. */
export function nearest(list, value) {
  if (!list.length) return -1;
  const index = lowerBound(list, value);
  if (index === 0) return 0;
  if (index === list.length) return index - 1;
  return value - list[index - 1] <= list[index] - value ? index - 1 : index;
}

/** x in words: "step 1,240", "epoch 3.2", "158,720 samples", "12:30". */
export function describe(x, axis) {
  if (axis === "time") return clock(x);
  if (axis === "epoch") return `epoch ${x.toFixed(2)}`;
  const whole = Math.round(x).toLocaleString("en");
  return axis === "samples" ? `${whole} samples` : `step ${whole}`;
}

/** Plotly's settings of the x axis. */
export function axisLayout(axis, range) {
  const base = range ? { range, autorange: false } : { autorange: true };
  if (axis !== "time") return { ...base, tickformat: axis === "epoch" ? "~g" : "~s", type: "linear" };
  const [from, to] = range ?? [0, 0];
  return { ...base, type: "linear", ...timeTicks(from, to) };
}

const TIME_UNITS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/** Round clock ticks for [from, to] in seconds. */
export function timeTicks(from, to) {
  const wide = Math.max(to - from, 1);
  const unit = TIME_UNITS.find((one) => wide / one <= 6) ?? Math.ceil(wide / 6 / 86400) * 86400;
  const tickvals = [];
  for (let at = Math.ceil(from / unit) * unit; at <= to; at += unit) tickvals.push(at);
  return { tickmode: "array", tickvals, ticktext: tickvals.map(clock) };
}
