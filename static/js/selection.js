// @ts-check
// Which rows of the jobs table are ticked, and the way from there to the compare page.

import { integer } from "./format.js";
import { toast } from "./toast.js";

export class Selection {
  constructor(page, body) {
    this.page = page;
    this.body = body;
    this.bar = page.querySelector("[data-selected]");
    this.all = page.querySelector("[data-all]");
    this.last = null;
    body.addEventListener("click", (event) => this._clicked(event));
    this.all.addEventListener("change", () => this._setAll(this.all.checked));
    page.querySelector("[data-clear]").addEventListener("click", () => this.clear());
    page.querySelector("[data-go-compare]").addEventListener("click", () => this.compare());
    this.prune(); // a reloaded page remembers ticks
  }

  get boxes() {
    return [...this.body.querySelectorAll("[data-check]")];
  }

  get ids() {
    return this.boxes.filter((box) => box.checked).map((box) => Number(box.closest("tr").dataset.id));
  }

  get size() {
    return this.ids.length;
  }

  toggle(line) {
    const box = line?.querySelector?.("[data-check]");
    if (!box) return;
    box.checked = !box.checked;
    this.last = box;
    this.prune();
  }

  clear() {
    this._setAll(false);
  }

  /** To the compare page, two jobs or more. */
  compare() {
    const ids = this.ids;
    if (ids.length < 2) toast("Select two jobs or more to compare them: tick their boxes, or press x on a row.", "warning");
    else location.assign(`${this.page.dataset.compare}?jobs=${ids.sort((a, b) => a - b).join(",")}`);
  }

  /** Brings the bar and the rows in line with the boxes, after rows came or went. */
  prune() {
    for (const box of this.boxes) box.closest("tr").setAttribute("aria-selected", String(box.checked));
    const size = this.size;
    this.bar.hidden = size === 0;
    this.bar.querySelector("[data-count]").textContent = `${integer(size)} selected`;
    this.all.checked = size > 0 && size === this.boxes.length;
    this.all.indeterminate = size > 0 && size < this.boxes.length;
  }

  _clicked(event) {
    const cell = event.target.closest(".col-check");
    if (!cell) return;
    const box = cell.querySelector("[data-check]");
    if (event.target !== box) box.checked = !box.checked;
    if (event.shiftKey && this.last) this._range(box);
    this.last = box;
    this.prune();
  }

  _range(box) {
    const boxes = this.boxes;
    const [from, to] = [boxes.indexOf(this.last), boxes.indexOf(box)].sort((a, b) => a - b);
    if (from < 0) return;
    for (const one of boxes.slice(from, to + 1)) one.checked = box.checked;
  }

  _setAll(checked) {
    for (const box of this.boxes) box.checked = checked;
    this.prune();
  }
}
