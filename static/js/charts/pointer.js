// @ts-check
// The crosshair that all charts share, and the values under it.

import { describe, nearest } from "./axis.js";
import { swatch } from "./legend.js";
import { readable } from "./numbers.js";

const TIP_ROWS = 8;
/** How far beyond its ends, as a part of the axis, a line still answers for its last value. */
const NEAR = 0.06;

/** The crosshair, tip and legend values of one chart. */
export class Pointer {
  /** @param {import("./chart.js").Chart} chart */
  constructor(chart) {
    this.chart = chart;
    const body = chart.element.querySelector(".chart-body");
    this.line = body.appendChild(element("div", "chart-cross"));
    this.dot = body.appendChild(element("div", "chart-dot"));
    this.tip = body.appendChild(element("div", "chart-tip"));
    for (const part of [this.line, this.dot, this.tip]) part.hidden = true;
    this._listen();
  }

  /** Puts crosshair and values where the page's pointer is; the newest values when it is nowhere. */
  show() {
    const { view, plotted, legend, panel } = this.chart;
    const lines = this.chart.lines.filter((line) => !line.silent);
    const pointer = view.pointer;
    const x = pointer?.x;
    const axis = plotted ? this.chart.plot._fullLayout?.xaxis : null;
    const at = pointer && axis ? axis.l2p(x) : NaN;
    const inside = at >= 0 && at <= axis?._length;
    this.line.hidden = !inside;
    if (inside) this.line.style.transform = `translateX(${Math.round(axis._offset + at)}px)`;
    const found = lines.map((line) => [line, x === undefined ? line.values.length - 1 : this._index(line, x)]);
    const readout = found.map(([line, index]) => [line.key, index < 0 ? "" : readable(line.values[index], panel.unit)]);
    legend?.values(new Map(readout));
    this._tip(pointer, found.filter(([, index]) => index >= 0), inside);
  }

  // A job that ended long before x has no value there.
  _index(line, x) {
    const [from, to] = this.chart.view.range ?? this.chart.source.extent();
    const near = (to - from) * NEAR;
    return x < line.xs[0] - near || x > line.xs[line.xs.length - 1] + near ? -1 : nearest(line.xs, x);
  }

  _tip(pointer, found, inside) {
    const own = Boolean(inside && pointer.chart === this.chart && found.length);
    this.tip.hidden = !own;
    this.dot.hidden = true;
    if (!own) return;
    const { panel, view, plot } = this.chart;
    const yaxis = plot._fullLayout.yaxis;
    const height = ([line, index]) => yaxis.l2p(yaxis.type === "log" ? Math.log10(line.values[index]) : line.values[index]);
    const distance = (entry) => (Number.isFinite(height(entry)) ? Math.abs(height(entry) - pointer.y) : Infinity);
    const ranked = found.toSorted((a, b) => distance(a) - distance(b));
    const [closest] = ranked;
    view.nearestKey = closest[0].key;
    // Few lines keep their order, so that nothing in the tip changes places while the pointer moves.
    const listed = found.length <= TIP_ROWS ? found : ranked.slice(0, TIP_ROWS);
    const rows = listed.map(([line, index]) => this._row(line, readable(line.values[index], panel.unit), line === closest[0]));
    const head = element("div", "chart-tip-head");
    head.textContent = describe(pointer.x, view.axis);
    if (ranked.length > TIP_ROWS) rows.push(more(ranked.length - TIP_ROWS));
    this.tip.replaceChildren(head, ...rows);
    this._place(plot._fullLayout.xaxis, yaxis, closest, height(closest));
  }

  _place(xaxis, yaxis, [line, index], height) {
    const left = xaxis._offset + xaxis.l2p(this.chart.view.pointer.x);
    const [room, wide] = [this.chart.plot.clientWidth, this.tip.offsetWidth];
    // Beside the crosshair where there is room, else within the chart.
    const beside = left + 14 + wide <= room ? left + 14 : left - 14 - wide;
    this.tip.style.left = `${Math.max(0, Math.min(beside, room - wide))}px`;
    if (!Number.isFinite(height)) return;
    this.dot.hidden = false;
    this.dot.style.background = line.colour;
    const x = line.level ? this.chart.view.pointer.x : line.xs[index];
    this.dot.style.transform = `translate(${xaxis._offset + xaxis.l2p(x)}px, ${yaxis._offset + height}px)`;
  }

  _row(line, text, nearestOne) {
    const row = element("div", nearestOne ? "chart-tip-row is-nearest" : "chart-tip-row");
    const label = element("span", "chart-tip-label");
    label.textContent = line.detail ?? line.label;
    const value = element("span", "chart-tip-value");
    value.textContent = text;
    row.append(swatch(line.colour, line.dash), label, value);
    return row;
  }

  _listen() {
    const { plot, view } = this.chart;
    let asked = false;
    const showSoon = () => {
      if (asked || !this.chart.visible) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        this.show();
      });
    };
    view.addEventListener("hover", showSoon);
    plot.addEventListener("pointermove", (event) => this._move(event));
    plot.addEventListener("pointerleave", () => view.setPointer(null));
    // A redraw in the middle of a drag would throw away Plotly's zoom box.
    plot.addEventListener("pointerdown", () => {
      this.chart.held = true;
      addEventListener("pointerup", () => this._release(), { once: true });
      addEventListener("pointercancel", () => this._release(), { once: true });
    });
  }

  _release() {
    this.chart.held = false;
    this.chart.stale();
  }

  _move(event) {
    const full = this.chart.plot._fullLayout;
    if (!this.chart.plotted || !full?.xaxis) return;
    const box = this.chart.plot.getBoundingClientRect();
    const at = event.clientX - box.left - full.xaxis._offset;
    const inside = at >= 0 && at <= full.xaxis._length;
    const y = event.clientY - box.top - full.yaxis._offset;
    this.chart.view.setPointer(inside ? { x: full.xaxis.p2l(at), y, chart: this.chart } : null);
  }
}

function element(name, className) {
  const made = document.createElement(name);
  made.className = className;
  return made;
}

function more(count) {
  const row = element("div", "chart-tip-more");
  row.textContent = `and ${count} more`;
  return row;
}
