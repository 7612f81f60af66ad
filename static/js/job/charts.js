// @ts-check
// The job page's charts: which lines each draws out of the page's series.

import { Scale } from "../charts/axis.js";
import { Chart } from "../charts/chart.js";
import { seriesColour } from "../charts/colours.js";
import { HeatStrip } from "../charts/heat.js";
import { replicaLines, straggler } from "./replicas.js";

const HELPERS = new Set(["epoch", "samples_seen"]);
const INSTEAD = ["mean_absolute_error", "perplexity", "reconstruction_error", "generator_loss"];

export class JobCharts {
  /**
   * @param {HTMLElement} grid
   * @param {{panels: object[], extra: object}} figures
   * @param {import("../charts/series.js").SeriesSet} set
   * @param {import("../charts/view.js").View} view
   * @param {object} message the job message
   */
  constructor(grid, figures, set, view, message) {
    Object.assign(this, { grid, figures, set, view, message });
    this.charts = [];
    this.known = new Set(HELPERS);
    this.scale = new Scale(message.steps_per_epoch, message.global_batch, 0);
    this.setMessage(message);
    for (const panel of figures.panels) this._add(panel, grid.querySelector(`[data-chart="${panel.key}"]`));
    this.heat = new HeatStrip(grid.querySelector(".heat"), view, {
      rows: () => this._replicas("utilization"),
      extent: () => this.extent(),
      straggler: () => straggler(this._replicas("utilization", false)),
    });
  }

  setMessage(message) {
    this.message = message;
    this.replicas = new Map(message.replica_info.map((info) => [info.replica, info]));
  }

  /** The series have grown. */
  stale() {
    this._origin();
    this._extras();
    this._options();
    this.blank();
    for (const chart of this.charts) chart.stale();
    this.heat.stale();
  }

  /** One sentence stands for the whole grid while there is nothing to draw and nothing is about to come. */
  blank() {
    const still = ["queued", "paused", "succeeded", "failed", "cancelled"].includes(this.message.state);
    const some = [...this.set.all.values()].some((series) => series.values.length);
    this.grid.parentElement.classList.toggle("is-blank", still && !some);
  }

  /** x of the first and the last point of the whole job. */
  extent() {
    let [low, high] = [Infinity, -Infinity];
    for (const series of this.set.all.values()) {
      if (!series.steps.length) continue;
      const ends = { steps: [series.steps[0], series.steps.at(-1)], times: [series.times[0], series.times.at(-1)] };
      const [first, last] = this.scale.xs(ends, this.view.axis);
      low = Math.min(low, first);
      high = Math.max(high, last);
    }
    if (low > high) return [0, 1];
    return low === high ? [low - 0.5, high + 0.5] : [low, high];
  }

  /** The steps that the zoom shows, a little more on each side. */
  window() {
    const [from, to] = this.view.range ?? [-Infinity, Infinity];
    const guide = this.set.get("loss") ?? [...this.set.all.values()][0];
    const steps = [from, to].map((x) => (Number.isFinite(x) ? this.scale.stepAt(x, this.view.axis, guide) : x));
    return [Math.floor(steps[0]), Math.ceil(steps[1])];
  }

  _origin() {
    let origin = this.message.started ? Date.parse(this.message.started) / 1000 : Infinity;
    for (const series of this.set.all.values()) origin = Math.min(origin, series.times[0] ?? Infinity);
    this.scale.origin = Number.isFinite(origin) ? origin : 0;
  }

  _add(panel, element) {
    for (const line of panel.lines) this.known.add(line.name);
    const all = () => (panel.perReplica ? this._perReplica(panel.key) : this._lines(panel));
    const chart = new Chart(element, panel, this.view, {
      all,
      lines: () => all().filter((line) => !this.view.hidden.has(line.key)),
      extent: () => this.extent(),
      rules: () => this._epochs(),
      empty: () => this._nothing(panel),
    });
    this.charts.push(chart);
  }

  _lines(panel) {
    const found = panel.lines.map((line) => [line, this.set.get(line.name)]);
    return found.filter(([, series]) => series?.values.length).map(([line, series]) => {
      const points = this._points(series);
      const look = { key: line.name, label: line.label, colour: seriesColour(line.colour), dash: line.dash };
      return { ...look, xs: this.scale.xs(points, this.view.axis), values: points.values };
    });
  }

  _points(series) {
    return this.view.range ? series.between(...this.window()) : series;
  }

  _perReplica(name) {
    return replicaLines(this._replicas(name), this.view.range ?? this.extent());
  }

  _replicas(name, zoomed = true) {
    return this.set.ofReplicas(name).map((series) => {
      const points = zoomed ? this._points(series) : series;
      const info = this.replicas.get(series.replica);
      const place = info ? ` (${info.process}, ${info.device})` : "";
      const label = `${series.replica}`;
      const xs = this.scale.xs(points, this.view.axis);
      return { replica: series.replica, label, detail: `replica ${label}${place}`, xs, values: points.values };
    });
  }

  _epochs() {
    const each = this.message.steps_per_epoch;
    const guide = this.set.get("loss");
    if (!each || !guide?.steps.length || guide.steps.at(-1) / each > 400) return [];
    const steps = [];
    for (let step = each; step < guide.steps.at(-1); step += each) steps.push(step);
    if (this.view.axis !== "time") return steps.map((step) => step * this.scale.factor(this.view.axis));
    return steps.map((step) => guide.times[Math.max(0, guide.steps.findIndex((one) => one >= step))] - this.scale.origin);
  }

  // A series that only a plugin knows gets a chart of its own as soon as it has a point.
  _extras() {
    for (const name of this.set.names) {
      if (this.known.has(name)) continue;
      this.known.add(name);
      const title = name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
      const panel = { ...this.figures.extra, key: name, title, lines: [{ name, label: "job", colour: 1, dash: "solid" }] };
      const element = document.getElementById("chart-template").content.cloneNode(true).firstElementChild;
      element.dataset.chart = name;
      element.querySelector(".chart-title").textContent = title;
      this.grid.append(element);
      this._add(panel, element);
    }
  }

  // What other tasks report stands in for accuracy: only what is reported has a place.
  _options() {
    const has = (name) => [name, `val_${name}`, `test_${name}`].some((one) => this.set.get(one)?.values.length);
    for (const name of INSTEAD) this.grid.querySelector(`[data-chart="${name}"]`).hidden = !has(name);
    this.grid.querySelector('[data-chart="accuracy"]').hidden = !has("accuracy") && INSTEAD.some(has);
  }

  _nothing(panel) {
    const { state } = this.message;
    if (panel.lines.length && this._lines(panel).length) return "Every line is hidden. Click a name above to show it.";
    if (panel.key !== "loss" && !this.message.step && state !== "running") return "";
    if (state === "queued") return "Nothing yet: the job waits for its place.";
    if (!this.message.first_step && !["succeeded", "failed", "cancelled"].includes(state)) {
      return panel.key === "loss" ? "The first point comes after the first compiled step." : "";
    }
    if (["succeeded", "failed", "cancelled"].includes(state)) {
      return this.message.step ? `This job reported no ${panel.title.toLowerCase()}.` : "This job ended before its first step.";
    }
    return `No ${panel.title.toLowerCase()} reported yet.`;
  }
}
