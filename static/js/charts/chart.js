// @ts-check
// One chart: draws its lines when it can be seen, shares zoom and pointer with the page's other charts.

import { axisLayout, describe } from "./axis.js";
import { onTheme, resolve, resolveAll } from "./colours.js";
import { Legend } from "./legend.js";
import { readable } from "./numbers.js";
import { Pointer } from "./pointer.js";
import { requestDraw } from "./schedule.js";
import { build as buildTable } from "./table.js";
import { oddities, traces } from "./traces.js";

const CONFIG = { displayModeBar: false, doubleClick: false, responsive: false, scrollZoom: false };
const MOST_RULES = 60;

/**
 * @typedef {object} Source what a chart asks its page for
 * @property {() => import("./traces.js").Line[]} lines those to draw, hidden ones left out
 * @property {() => import("./traces.js").Line[]} all those for the legend
 * @property {() => [number, number]} extent x of the first and last point on the page
 * @property {() => number[]} [rules] x of epochs' ends
 * @property {() => string} empty why there is nothing yet
 * @property {boolean} [legend] false where the page has a legend of its own
 * @property {() => boolean} [raw] whether the raw line is drawn behind the smoothed one
 */

export class Chart {
  /** @param {HTMLElement} element @param {object} panel @param {import("./view.js").View} view @param {Source} source */
  constructor(element, panel, view, source) {
    Object.assign(this, { element, panel, view, source });
    this.plot = /** @type {HTMLElement} */ (element.querySelector(".chart-plot"));
    this.visible = false;
    this.held = false;
    this.lines = [];
    this.layout = null;
    this.plotted = false;
    this.legend = source.legend === false ? null : new Legend(element.querySelector(".chart-legend"), view);
    this.pointer = new Pointer(this);
    this._observe();
    this._listen();
  }

  /** Its data have changed. */
  stale() {
    requestDraw(this);
  }

  draw() {
    const { all, lines } = this.source;
    this.lines = lines();
    const some = this.lines.some((line) => line.values.length > 0);
    this.element.classList.toggle("is-empty", !some && !all().some((line) => line.values.length > 0));
    this.element.querySelector(".chart-empty").textContent = this.source.empty();
    this.legend?.show(all().filter((line) => !line.silent));
    if (some || this.plotted) this._plot();
    this.pointer.show();
    this.element.dataset.draws = String(Number(this.element.dataset.draws ?? 0) + 1);
    this.element.dataset.points = String(Math.max(0, ...this.lines.map((line) => line.values.length)));
  }

  _plot() {
    const { view, plot } = this;
    this.layout ??= resolveAll(this.panel.layout);
    const options = {
      weight: this.panel.smooths === false ? 0 : view.smooth,
      raw: this.source.raw?.() ?? true,
      highlight: view.highlight,
    };
    globalThis.Plotly.react(plot, traces(this.lines, options), this._layout(), CONFIG);
    if (!this.plotted) this._attach();
    this.plotted = true;
    this._describe();
  }

  _layout() {
    const range = this.view.range ?? this.source.extent();
    const log = this.view.log.has(this.panel.key);
    const yaxis = { ...this.layout.yaxis, type: log ? "log" : "linear" };
    if (log) Object.assign(yaxis, { dtick: undefined, tickformat: "~g", rangemode: "normal", autorangeoptions: {} });
    return {
      ...this.layout,
      width: this.plot.clientWidth,
      height: this.plot.clientHeight,
      xaxis: { ...this.layout.xaxis, ...axisLayout(this.view.axis, range) },
      yaxis,
      shapes: this._rules(range),
    };
  }

  _rules([from, to]) {
    const inside = (this.source.rules?.() ?? []).filter((x) => x > from && x < to);
    if (inside.length > MOST_RULES) return [];
    const line = { color: resolve("var(--chart-rule)"), width: 1, dash: "dot" };
    return inside.map((x) => ({ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", layer: "below", line }));
  }

  _attach() {
    this.plot.on("plotly_relayout", (change) => {
      const from = change["xaxis.range[0]"];
      if (from !== undefined) this.view.setRange([from, change["xaxis.range[1]"]]);
    });
    this.plot.on("plotly_doubleclick", () => this.view.setRange(null));
  }

  // What a screen reader hears in place of the picture; eyes find the same in the note under the title.
  _describe() {
    const where = (x) => describe(x, this.view.axis);
    const notes = this.lines.flatMap((line) => (line.marks === false ? [] : oddities(line, where)));
    const note = this.element.querySelector(".chart-note");
    note.textContent = notes.length > 1 ? `${notes[0].short}, and ${notes.length - 1} more` : notes[0]?.short ?? "";
    note.hidden = !notes.length;
    const odd = notes.slice(0, 5).map((one) => one.long).join("; ");
    const values = this.lines.filter((line) => line.values.length && !line.silent).slice(0, 6);
    const newest = values.map((line) => `${line.label} ${readable(line.values[line.values.length - 1], this.panel.unit)}`);
    this.plot.setAttribute("aria-label", `${this.panel.title}. Newest: ${newest.join(", ") || "nothing"}. ${odd}`);
  }

  _observe() {
    new IntersectionObserver(
      ([entry]) => {
        this.visible = entry.isIntersecting;
        if (this.visible) this.stale();
      },
      { rootMargin: "200px" },
    ).observe(this.element);
    new ResizeObserver(() => this.stale()).observe(this.plot);
    onTheme(() => {
      this.layout = null;
      this.stale();
    });
  }

  _listen() {
    for (const type of ["change", "zoom", "highlight"]) this.view.addEventListener(type, () => this.stale());
    this.view.addEventListener("change", () => this._pressed());
    this.element.addEventListener("click", (event) => {
      const tool = /** @type {HTMLElement} */ (event.target).closest("[data-tool]");
      if (tool) this._tool(tool);
    });
    this._pressed();
  }

  _pressed() {
    const log = this.element.querySelector('[data-tool="log"]');
    log?.setAttribute("aria-pressed", String(this.view.log.has(this.panel.key)));
  }

  _tool(button) {
    if (button.dataset.tool === "log") this.view.toggleLog(this.panel.key);
    if (button.dataset.tool === "wide") {
      button.setAttribute("aria-pressed", String(this.element.classList.toggle("is-wide")));
    }
    if (button.dataset.tool === "table") this._table(button);
  }

  _table(button) {
    const shown = this.element.classList.toggle("has-table");
    button.setAttribute("aria-pressed", String(shown));
    const place = this.element.querySelector(".chart-table");
    place.hidden = !shown;
    place.replaceChildren(...(shown ? buildTable(this.source.lines().filter((line) => !line.silent), this.view.axis, this.panel.title) : []));
    this.stale();
  }
}
