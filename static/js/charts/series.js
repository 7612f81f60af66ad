// @ts-check
// The points that this page holds of each series, and how many the server has of it.

import { parseValue } from "./numbers.js";
import { keepIndexes } from "./thin.js";
import { lowerBound } from "./axis.js";

/** Above MOST points a series is thinned to KEEP, so that a page open for days stays as light as a new one. */
const MOST = 6000;
const KEEP = 3000;

/** `loss`, or `utilization.3` for replica 3: also how `since=` names a series. */
export const seriesKey = (name, replica) => (replica === null || replica === undefined ? name : `${name}.${replica}`);

/** One series: its points, oldest first, and `count`, how many the server holds of it. */
export class Series {
  constructor(name, replica) {
    this.name = name;
    this.replica = replica ?? null;
    this.count = 0;
    this.thinned = false;
    this.version = 0;
    this.finest = null;
    this._fill([], [], []);
  }

  get last() {
    return this.values.length ? this.values[this.values.length - 1] : undefined;
  }

  /** Replaces everything by what /series answered. */
  load(answer) {
    this._fill(answer.steps, answer.times, answer.values.map(parseValue));
    this.count = answer.count;
    this.thinned = Boolean(answer.thinned);
    this.finest = null;
  }

  /**
   * Adds points of which the first is number `start` of the series; what is known already is dropped.
   * @returns {"same" | "grown" | "gap" | "restarted"} gap: points before `start` are missing here
   */
  append({ start, steps, times, values }) {
    if (start > this.count) return "gap";
    const skip = this.count - start;
    if (skip >= steps.length) return "same";
    if (this.steps.length && steps[skip] < this.steps[this.steps.length - 1]) return "restarted";
    for (let index = skip; index < steps.length; index++) this._push(steps[index], times[index], parseValue(values[index]));
    this.count += steps.length - skip;
    this.version += 1;
    if (this.steps.length > MOST) this._thin();
    return "grown";
  }

  /** Finer points for the zoomed window, from /series?first=&last=; dropped by the next zoom. */
  refine(answer) {
    const values = answer.values.map(parseValue);
    this.finest = { steps: answer.steps, times: answer.times, values };
    this.version += 1;
  }

  /** The points between two steps, the finest there are; one more on each side so that lines reach the edges. */
  between(first, last) {
    const fine = this.finest && this.finest.steps.length ? this._withTail(this.finest) : this;
    const from = Math.max(0, lowerBound(fine.steps, first) - 1);
    const to = Math.min(fine.steps.length, lowerBound(fine.steps, last) + 2);
    return { steps: fine.steps.slice(from, to), times: fine.times.slice(from, to), values: fine.values.slice(from, to) };
  }

  // Points that came after the zoom was fetched are only in the live lists.
  _withTail(fine) {
    const from = lowerBound(this.steps, fine.steps[fine.steps.length - 1] + 1);
    return {
      steps: [...fine.steps, ...this.steps.slice(from)],
      times: [...fine.times, ...this.times.slice(from)],
      values: [...fine.values, ...this.values.slice(from)],
    };
  }

  _fill(steps, times, values) {
    this.steps = steps;
    this.times = times;
    this.values = values;
    this.low = Infinity;
    this.high = -Infinity;
    for (const value of values) this._stretch(value);
    this.version += 1;
  }

  _push(step, time, value) {
    this.steps.push(step);
    this.times.push(time);
    this.values.push(value);
    this._stretch(value);
  }

  _stretch(value) {
    if (!Number.isFinite(value)) return;
    if (value < this.low) this.low = value;
    if (value > this.high) this.high = value;
  }

  _thin() {
    const kept = keepIndexes(this.values, KEEP);
    this._fill(kept.map((i) => this.steps[i]), kept.map((i) => this.times[i]), kept.map((i) => this.values[i]));
    this.thinned = true;
  }
}

/** All series of one job, by key. */
export class SeriesSet {
  constructor() {
    /** @type {Map<string, Series>} */
    this.all = new Map();
  }

  get(name, replica = null) {
    return this.all.get(seriesKey(name, replica));
  }

  ensure(name, replica = null) {
    const key = seriesKey(name, replica);
    if (!this.all.has(key)) this.all.set(key, new Series(name, replica));
    return /** @type {Series} */ (this.all.get(key));
  }

  /** The series of one name over all replicas, by replica. */
  ofReplicas(name) {
    const found = [...this.all.values()].filter((series) => series.name === name && series.replica !== null);
    return found.sort((a, b) => a.replica - b.replica);
  }

  get names() {
    return new Set([...this.all.values()].filter((series) => series.replica === null).map((series) => series.name));
  }
}
