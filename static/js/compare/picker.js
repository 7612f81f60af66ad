// @ts-check
// Finds jobs of the team by name, number or `state:running`, and adds one to the comparison.

import { ago } from "../format.js";
import { fetchJson } from "../job/request.js";

const TYPING = 150;
const SIZE = 30;

export class Picker {
  /** @param {HTMLElement} element @param {Set<number>} chosen @param {(id: number) => void} add */
  constructor(element, chosen, add) {
    Object.assign(this, { element, chosen, add });
    this.input = /** @type {HTMLInputElement} */ (element.querySelector("input"));
    this.list = element.querySelector("[role=listbox]");
    this.active = -1;
    this.timer = 0;
    this.input.addEventListener("focus", () => this._search());
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this._search(), TYPING);
    });
    this.input.addEventListener("keydown", (event) => this._key(event));
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => this._take(event.target.closest("[role=option]")));
    element.addEventListener("focusout", (event) => !element.contains(event.relatedTarget) && this._close());
  }

  async _search() {
    const query = new URLSearchParams({ q: this.input.value.trim(), size: String(SIZE) });
    const number = (this.asked = (this.asked ?? 0) + 1);
    try {
      const answer = await fetchJson(`${this.element.dataset.rows}?${query}`);
      if (number === this.asked) this._show(answer.rows, answer.total);
    } catch (error) {
      if (number === this.asked) this._say(error.message);
    }
  }

  _show(rows, total) {
    const free = rows.filter((row) => !this.chosen.has(row.id));
    if (!free.length) {
      this._say(rows.length ? "All of these are compared already." : "No job of this team matches.");
      return;
    }
    this.list.replaceChildren(...free.map((row, index) => option(row, index)));
    if (total > rows.length) this.list.append(note(`${(total - rows.length).toLocaleString("en")} more: type to narrow down`));
    this._open(true);
    this._activate(this.input.value ? 0 : -1);
  }

  _say(text) {
    this.list.replaceChildren(note(text));
    this._open(true);
    this.active = -1;
  }

  _open(open) {
    this.list.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
  }

  _close() {
    this.asked = (this.asked ?? 0) + 1;
    this._open(false);
  }

  _key(event) {
    if (event.key === "Escape") this._close();
    if (event.key === "Enter") {
      event.preventDefault();
      this._take(this.options[this.active] ?? null);
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !this.options.length) return;
    event.preventDefault();
    this._activate((this.active + step + this.options.length) % this.options.length);
  }

  get options() {
    return [...this.list.querySelectorAll("[role=option]")];
  }

  _activate(index) {
    this.active = index;
    this.options.forEach((one, at) => one.setAttribute("aria-selected", String(at === index)));
    const chosen = this.options[index];
    this.input.setAttribute("aria-activedescendant", chosen?.id ?? "");
    chosen?.scrollIntoView({ block: "nearest" });
  }

  _take(found) {
    if (found) this.add(Number(found.dataset.id));
  }
}

function option(row, index) {
  const made = document.createElement("div");
  made.role = "option";
  made.id = `pick-${index}`;
  made.dataset.id = String(row.id);
  made.dataset.state = row.state;
  const name = document.createElement("span");
  name.className = "cut";
  name.textContent = row.name;
  const facts = document.createElement("span");
  facts.className = "pick-facts";
  facts.textContent = `#${row.id} · ${row.state_label} · ${row.model} on ${row.dataset} · ${ago(row.created)}`;
  made.append(name, facts);
  return made;
}

function note(text) {
  const made = document.createElement("p");
  made.className = "pick-note";
  made.textContent = text;
  return made;
}
