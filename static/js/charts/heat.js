// @ts-check
// The heat strip: one row a replica, one column a moment, on a canvas since Plotly's basic bundle has no heat map.

import { describe, lowerBound } from "./axis.js";
import { onTheme, resolve } from "./colours.js";
import { requestDraw } from "./schedule.js";

const STOPS = 5;
const COLUMN = 4;
const GUTTER = 52;

/**
 * Means of (xs, values) in `count` equal columns of [from, to]; NaN where a column holds no point. A point counts until
 * the next one, at most `reach` columns, so that a sampling slower than the columns leaves no stripes.
 */
export function columns(xs, values, [from, to], count) {
  const sums = new Float64Array(count);
  const hits = new Uint32Array(count);
  const width = (to - from) / count || 1;
  for (let index = lowerBound(xs, from); index < xs.length && xs[index] <= to; index++) {
    if (!Number.isFinite(values[index])) continue;
    const column = Math.min(count - 1, Math.floor((xs[index] - from) / width));
    sums[column] += values[index];
    hits[column] += 1;
  }
  const gaps = xs.length > 1 ? (xs[xs.length - 1] - xs[0]) / (xs.length - 1) / width : 1;
  return fill(sums, hits, Math.ceil(gaps * 3) + 1);
}

function fill(sums, hits, reach) {
  const means = new Float64Array(sums.length).fill(NaN);
  let last = -Infinity;
  for (let column = 0; column < sums.length; column++) {
    if (hits[column]) {
      means[column] = sums[column] / hits[column];
      last = column;
    } else if (column - last <= reach && Number.isFinite(means[last])) {
      means[column] = means[last];
    }
  }
  return means;
}

export class HeatStrip {
  /**
   * @param {HTMLElement} element
   * @param {import("./view.js").View} view
   * @param {{rows: () => {label: string, detail: string, xs: number[], values: number[]}[],
   *   extent: () => [number, number], straggler: () => {text: string, row: number} | null}} source
   */
  constructor(element, view, source) {
    Object.assign(this, { element, view, source });
    this.canvas = element.querySelector("canvas");
    this.note = element.querySelector(".heat-note");
    this.tip = element.querySelector(".chart-tip");
    this.cross = element.querySelector(".chart-cross");
    this.visible = false;
    this.held = false;
    this.rows = [];
    this._listen();
  }

  stale() {
    requestDraw(this);
  }

  draw() {
    this.rows = this.source.rows();
    this.range = this.view.range ?? this.source.extent();
    const some = this.rows.some((row) => row.values.length);
    this.element.classList.toggle("is-empty", !some);
    if (!some) return;
    this._size();
    const top = this._top();
    this.element.querySelector(".heat-top").textContent = `${top} %`;
    const context = this.canvas.getContext("2d");
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const found = this.source.straggler();
    this.rows.forEach((row, index) => this._row(context, row, index, top, found?.row === index));
    this.note.textContent = found?.text ?? "";
    this.note.hidden = !found;
    this.canvas.setAttribute("aria-label", this._words(found));
    this._cross();
    this.element.dataset.draws = String(Number(this.element.dataset.draws ?? 0) + 1);
  }

  _size() {
    this.width = this.canvas.parentElement.clientWidth;
    this.rowHeight = this.rows.length <= 4 ? 22 : this.rows.length <= 16 ? 14 : this.rows.length <= 32 ? 9 : 6;
    this.height = this.rows.length * this.rowHeight;
    const [wide, high] = [Math.round(this.width * devicePixelRatio), Math.round(this.height * devicePixelRatio)];
    if (this.canvas.width === wide && this.canvas.height === high) return;
    this.canvas.width = wide;
    this.canvas.height = high;
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
  }

  // A share of all cores stays far below 100 % on a machine with many processes: the scale follows what is there.
  _top() {
    let highest = 0;
    for (const row of this.rows) for (const value of row.values) if (value > highest) highest = value;
    return highest > 60 ? 100 : Math.max(10, Math.ceil(highest / 10) * 10);
  }

  _row(context, row, index, top, straggles) {
    const y = index * this.rowHeight;
    const gap = this.rowHeight > 8 ? 2 : 1;
    const means = columns(row.xs, row.values, this.range, Math.max(1, Math.floor((this.width - GUTTER - 10) / COLUMN)));
    means.forEach((mean, column) => {
      context.fillStyle = Number.isNaN(mean) ? resolve("var(--heat-none)") : this._colour(mean / top);
      context.fillRect(GUTTER + column * COLUMN, y, COLUMN, this.rowHeight - gap);
    });
    const every = this.rowHeight >= 14 ? 1 : this.rowHeight >= 9 ? 2 : 4;
    if (index % every && !straggles) return;
    context.fillStyle = resolve(straggles ? "var(--chart-mark)" : "var(--chart-text)");
    context.font = `${straggles ? "600 " : ""}11px system-ui, sans-serif`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    if (straggles && every > 1) context.clearRect(0, y - 4, GUTTER - 4, this.rowHeight + 8);
    context.fillText(row.label, GUTTER - 8, y + (this.rowHeight - gap) / 2 + 0.5);
  }

  _colour(share) {
    const at = Math.max(0, Math.min(1, share)) * (STOPS - 1);
    const low = Math.min(STOPS - 2, Math.floor(at));
    this.stops ??= Array.from({ length: STOPS }, (_, index) => rgb(resolve(`var(--heat-stop-${index})`)));
    const mixed = this.stops[low].map((value, index) => Math.round(value + (this.stops[low + 1][index] - value) * (at - low)));
    return `rgb(${mixed.join(",")})`;
  }

  _words(found) {
    const newest = this.rows.slice(0, 16).map((row) => `${row.detail} ${Math.round(row.values[row.values.length - 1] ?? 0)} %`);
    return `Utilization of ${this.rows.length} replicas over time. Newest: ${newest.join("; ")}. ${found?.text ?? ""}`;
  }

  _listen() {
    new IntersectionObserver(([entry]) => {
      this.visible = entry.isIntersecting;
      if (this.visible) this.stale();
    }, { rootMargin: "200px" }).observe(this.element);
    new ResizeObserver(() => this.stale()).observe(this.canvas.parentElement);
    onTheme(() => {
      this.stops = undefined;
      this.stale();
    });
    for (const type of ["change", "zoom"]) this.view.addEventListener(type, () => this.stale());
    this.view.addEventListener("hover", () => this._cross());
    this.canvas.addEventListener("pointermove", (event) => this._move(event));
    this.canvas.addEventListener("pointerleave", () => this._leave());
  }

  get span() {
    return Math.floor((this.width - GUTTER - 10) / COLUMN) * COLUMN;
  }

  _move(event) {
    const box = this.canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - GUTTER) / this.span;
    const row = this.rows[Math.floor((event.clientY - box.top) / this.rowHeight)];
    if (share < 0 || share > 1 || !row) {
      this._leave();
      return;
    }
    const x = this.range[0] + share * (this.range[1] - this.range[0]);
    this.view.setPointer({ x, y: 0, chart: this });
    const index = Math.min(lowerBound(row.xs, x), row.values.length - 1);
    this.tip.hidden = false;
    this.tip.textContent = `${row.detail} · ${describe(x, this.view.axis)} · ${Math.round(row.values[index] ?? 0)} %`;
    this.tip.style.left = share > 0.6 ? "auto" : `${event.clientX - box.left + 14}px`;
    this.tip.style.right = share > 0.6 ? `${box.right - event.clientX + 14}px` : "auto";
  }

  _leave() {
    this.tip.hidden = true;
    this.view.setPointer(null);
  }

  _cross() {
    const x = this.view.pointer?.x;
    const share = x === undefined || !this.range ? NaN : (x - this.range[0]) / (this.range[1] - this.range[0]);
    this.cross.hidden = !(share >= 0 && share <= 1);
    if (!this.cross.hidden) this.cross.style.transform = `translateX(${Math.round(GUTTER + share * this.span)}px)`;
  }
}

/** Red, green and blue of any colour CSS knows. */
function rgb(colour) {
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
}
