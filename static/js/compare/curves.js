// @ts-check
// The curves of the compared jobs: each metric is fetched when its chart is first looked at, and running jobs keep growing.

import { Scale } from "../charts/axis.js";
import { SeriesSet } from "../charts/series.js";
import { fetchJson } from "../job/request.js";

const RETRY = 3000;
/** Above this many jobs a dot on every point would only cost time. */
const MOST_MARKED = 12;
/** What evaluations measure of a model; how fast they did it is no level for a curve. */
const MEASURED = /^(val|test)_/;

export class Curves {
  /**
   * @param {object[]} jobs the page's facts of each job
   * @param {Map<number, {colour: string, dash: string}>} styles by id
   * @param {string} url of compare-data
   * @param {{onPoints: (metrics: string[]) => void, onTrouble: (text: string) => void}} listeners
   */
  constructor(jobs, styles, url, listeners) {
    Object.assign(this, { url, listeners });
    this.jobs = new Map(jobs.map((job) => [job.id, { ...job, ...styles.get(job.id), set: new SeriesSet(), scale: scaleOf(job) }]));
    /** @type {Map<string, "loading" | "loaded">} */
    this.metrics = new Map();
    this.waiting = [];
    this.lacking = new Map();
  }

  /** Starts loading `metric` unless that has happened; true when its curves are here. */
  want(metric) {
    const state = this.metrics.get(metric);
    if (!state) this._load(metric, [...this.jobs.keys()]);
    return state === "loaded";
  }

  /** A `points` message of the team's socket. */
  receive(message) {
    const job = this.jobs.get(message.job);
    if (!job) return;
    const parts = message.series.filter((one) => one.replica === null && this.metrics.has(one.name));
    if (!parts.length) return;
    for (const one of parts) {
      if (this.metrics.get(one.name) === "loading") this.waiting.push({ job: job.id, part: one });
      else this._append(job, one);
    }
    this.listeners.onPoints(parts.map((one) => one.name));
  }

  /** Everything anew: messages were lost. */
  reload() {
    for (const metric of this.metrics.keys()) this._load(metric, [...this.jobs.keys()]);
  }

  /** [first, last] of x over all metrics of the jobs that are shown: one axis for all charts. */
  extent(axis, hidden) {
    let [low, high] = [Infinity, -Infinity];
    for (const job of this.jobs.values()) {
      if (job.level || hidden.has(keyOf(job.id))) continue;
      for (const series of job.set.all.values()) {
        if (!series.steps.length) continue;
        const ends = { steps: [series.steps[0], series.steps.at(-1)], times: [series.times[0], series.times.at(-1)] };
        const [first, last] = job.scale.xs(ends, axis);
        low = Math.min(low, first);
        high = Math.max(high, last);
      }
    }
    if (low > high) return [0, 1];
    return low === high ? [low - 0.5, high + 0.5] : [low, high];
  }

  /** Finer points of what a zoom shows, for curves of which only a part is here; an older question is dropped. */
  async refine(axis, range, hidden) {
    this.coarse();
    this.abort = new AbortController();
    const metrics = [...this.metrics].filter(([, state]) => state === "loaded").map(([metric]) => metric);
    const zoomed = [...this.jobs.values()].filter((job) => !hidden.has(keyOf(job.id)) && metrics.some((one) => job.set.get(one)?.thinned));
    if (!zoomed.length) return;
    const windows = zoomed.map((job) => {
      const guide = metrics.map((one) => job.set.get(one)).find((series) => series?.steps.length);
      const [first, last] = range.map((x) => job.scale.stepAt(x, axis, guide));
      return `${job.id}:${Math.max(0, Math.floor(first))}:${Math.max(0, Math.ceil(last))}`;
    });
    const query = `jobs=${zoomed.map((job) => job.id).join(",")}&metrics=${metrics.map(encodeURIComponent).join(",")}&windows=${windows.join(",")}`;
    try {
      const answer = await fetchJson(`${this.url}?${query}`, this.abort.signal);
      for (const one of answer.series) {
        const job = this.jobs.get(one.job);
        const series = job.set.get(one.name);
        if (series?.thinned) series.refine({ ...one, times: one.times.map((time) => time + job.origin) });
      }
      this.listeners.onPoints(metrics);
    } catch (error) {
      if (error.name !== "AbortError") this.listeners.onTrouble(error.message);
    }
  }

  /** Forget the finer points of an earlier zoom. */
  coarse() {
    this.abort?.abort();
    for (const job of this.jobs.values()) for (const series of job.set.all.values()) series.finest = null;
  }

  /** One line a job for the chart of `metric`; across all of it for what a job without steps has measured. */
  lines(metric, { axis, range, hidden }) {
    const found = [];
    const ends = range ?? this.extent(axis, hidden);
    const marked = this.jobs.size <= MOST_MARKED;
    for (const job of this.jobs.values()) {
      const series = job.set.get(metric);
      const key = keyOf(job.id);
      if (!series?.values.length || hidden.has(key)) continue;
      const look = { key, label: job.name, colour: job.colour, dash: job.dash };
      if (job.level) {
        if (MEASURED.test(metric)) found.push({ ...look, xs: ends, values: [series.last, series.last], points: false, smooths: false, level: true });
        continue;
      }
      const points = range ? this._window(job, series, axis, range) : series;
      const xs = job.scale.xs(points, axis);
      found.push({ ...look, xs, values: points.values, points: marked });
    }
    return found;
  }

  _window(job, series, axis, [from, to]) {
    return series.between(job.scale.stepAt(from, axis, series), job.scale.stepAt(to, axis, series) + 1);
  }

  async _load(metric, ids) {
    this.metrics.set(metric, "loading");
    try {
      const answer = await fetchJson(`${this.url}?jobs=${ids.join(",")}&metrics=${encodeURIComponent(metric)}`);
      for (const one of answer.series) this._fill(one);
      this.listeners.onTrouble("");
    } catch (error) {
      this.listeners.onTrouble(error.message);
      if (error.retry !== false) setTimeout(() => this._load(metric, ids), RETRY);
      return;
    }
    this.metrics.set(metric, "loaded");
    const [mine, others] = split(this.waiting, ({ part }) => part.name === metric);
    this.waiting = others;
    for (const { job, part } of mine) this._append(this.jobs.get(job), part);
    this.listeners.onPoints([metric]);
  }

  _fill(one) {
    const job = this.jobs.get(one.job);
    // Times travel relative to the job's start, since they are shorter so.
    const times = one.times.map((time) => time + job.origin);
    job.set.ensure(one.name).load({ ...one, times });
  }

  _append(job, part) {
    const outcome = job.set.ensure(part.name).append(part);
    if (outcome !== "gap" && outcome !== "restarted") return;
    if (!this.lacking.size) setTimeout(() => this._mend(), 300);
    this.lacking.set(part.name, (this.lacking.get(part.name) ?? new Set()).add(job.id));
  }

  _mend() {
    for (const [metric, ids] of this.lacking) this._load(metric, [...ids]);
    this.lacking.clear();
  }
}

export const keyOf = (id) => `job ${id}`;
const scaleOf = (job) => new Scale(job.stepsPerEpoch, job.globalBatch, job.origin);
const split = (list, test) => [list.filter((one) => test(one)), list.filter((one) => !test(one))];
