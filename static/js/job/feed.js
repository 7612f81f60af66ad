// @ts-check
// Keeps the page's series equal to the server's: one load, then the socket's deltas; whatever is missing is asked for again.

import { connect } from "../socket.js";
import { fetchJson } from "./request.js";

const JOB_POINTS = 2000;
/** Points over all replicas of one name, so that 64 replicas cost what two do. */
const REPLICA_POINTS = 24_000;
const RETRY = [500, 1000, 2000, 5000, 15000];

/** @typedef {{onPoints: () => void, onJob: (message: object) => void, onLog: (lines: object[]) => void,
 *   onLogGap: () => void, onStatus: Function, onTrouble: (text: string) => void}} Listeners */

export class Feed {
  /**
   * @param {{id: number, url: string, names: string[], replicas: number}} job
   * @param {import("../charts/series.js").SeriesSet} set
   * @param {Listeners} listeners
   */
  constructor(job, set, listeners) {
    Object.assign(this, { job, set, listeners });
    this.loading = false;
    this.again = false;
    this.waiting = [];
    this.missing = new Map();
    this.tries = 0;
    this.wasLive = null;
  }

  start() {
    this.load();
    connect(`/ws/jobs/${this.job.id}/`, {
      onMessage: (message) => this.receive(message),
      onStatus: (status, age) => this._status(status, age),
    });
  }

  receive(message) {
    if (message.type === "job") this.listeners.onJob(message);
    if (message.type === "log") this.listeners.onLog(message.lines);
    if (message.type === "points") this._points(message);
    if (message.type === "gap") {
      this.load();
      this.listeners.onLogGap();
    }
  }

  /** Asks for everything, thinned; points that arrive meanwhile wait. */
  async load() {
    if (this.loading) {
      this.again = true;
      return;
    }
    this.loading = true;
    this.again = false;
    const answers = await this._ask(this._overviews());
    this.loading = false;
    if (!answers) return;
    for (const one of answers.flatMap((answer) => answer.series)) this.set.ensure(one.name, one.replica).load(one);
    this.loaded = true;
    const waited = this.waiting;
    this.waiting = [];
    for (const message of waited) this._points(message);
    this.listeners.onPoints();
    if (this.again) this.load();
  }

  /** Finer points between two steps for series that hold a part only; the answer to an older question is dropped. */
  async refine(first, last) {
    this.abort?.abort();
    this.abort = new AbortController();
    const thinned = [...this.set.all.values()].filter((series) => series.thinned);
    if (!thinned.length) return;
    const window = `first=${Math.floor(first)}&last=${Math.ceil(last)}`;
    const queries = this._overviews().map((query) => `${query}&${window}`);
    try {
      const answers = await Promise.all(queries.map((query) => fetchJson(this._url(query), this.abort.signal)));
      for (const one of answers.flatMap((answer) => answer.series)) this.set.get(one.name, one.replica)?.refine(one);
      this.listeners.onPoints();
    } catch (error) {
      if (error.name !== "AbortError") this.listeners.onTrouble(error.message);
    }
  }

  coarse() {
    this.abort?.abort();
    for (const series of this.set.all.values()) series.finest = null;
  }

  _overviews() {
    const names = this.job.names.map(encodeURIComponent).join(",");
    const each = Math.max(150, Math.min(1000, Math.floor(REPLICA_POINTS / Math.max(1, this.job.replicas))));
    return [`names=${names}&points=${JOB_POINTS}`, `names=utilization,memory&points=${each}`];
  }

  _url(query) {
    return `${this.job.url}series?${query}`;
  }

  async _ask(queries) {
    try {
      const answers = await Promise.all(queries.map((query) => fetchJson(this._url(query))));
      this.tries = 0;
      this.listeners.onTrouble("");
      return answers;
    } catch (error) {
      this.listeners.onTrouble(error.message);
      const delay = RETRY[Math.min(this.tries, RETRY.length - 1)];
      this.tries += 1;
      if (error.retry !== false) setTimeout(() => this.load(), delay);
      return null;
    }
  }

  _points(message) {
    if (this.loading || !this.loaded) {
      this.waiting.push(message);
      return;
    }
    for (const one of message.series) {
      const series = this.set.ensure(one.name, one.replica);
      const outcome = series.append(one);
      if (outcome === "gap") this._lack(series);
      if (outcome === "restarted") this.load();
    }
    this.listeners.onPoints();
  }

  _lack(series) {
    const key = series.replica === null ? series.name : `${series.name}.${series.replica}`;
    if (!this.missing.size) setTimeout(() => this._fill(), 100);
    this.missing.set(key, series);
  }

  async _fill() {
    const asked = [...this.missing].map(([key, series]) => [key, series.count]);
    this.missing.clear();
    const since = asked.map(([key, count]) => `${encodeURIComponent(key)}:${count}`).join(",");
    const answers = await this._ask([`since=${since}`]);
    if (!answers) return;
    const starts = new Map(asked);
    for (const one of answers[0].series) {
      const series = this.set.ensure(one.name, one.replica);
      const key = one.replica === null ? one.name : `${one.name}.${one.replica}`;
      series.append({ ...one, start: one.start ?? starts.get(key) ?? series.count });
    }
    this.listeners.onPoints();
  }

  _status(status, age) {
    const live = status === "live";
    // After a break anything may have passed unheard: points, the end of the job, log lines.
    if (live && this.wasLive === false) {
      this.load();
      this.listeners.onLogGap();
    }
    if (live || status === "reconnecting" || status === "offline") this.wasLive = live;
    this.listeners.onStatus(status, age);
  }
}
