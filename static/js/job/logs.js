// @ts-check
// The Logs tab: follows the newest lines, loads older ones when scrolled up, searches on the server.

import { fetchJson } from "./request.js";
import { lineElement } from "./loglines.js";

const PAGE = 500;
/** Rows in the page at most; older ones go, and come back from the server when scrolled to. */
const MOST = 3000;
const NEAR = 60;
const TYPING = 250;

export class Logs {
  /** @param {HTMLElement} panel @param {string} url of the job, ending in a slash */
  constructor(panel, url) {
    Object.assign(this, { panel, url });
    this.box = panel.querySelector(".log-box");
    this.rows = panel.querySelector(".log-rows");
    this.pill = panel.querySelector(".log-pill");
    this.note = panel.querySelector(".log-note");
    this.form = panel.querySelector("form");
    this.following = true;
    this.open = false;
    this.filled = false;
    this.queue = [];
    this.unseen = 0;
    this.highest = 0;
    this.older = false;
    this.busy = false;
    this._listen();
  }

  /** The tab was opened or left. */
  setOpen(open) {
    this.open = open;
    if (open && !this.filled) this.reload();
    else if (open && this.following) this._bottom();
  }

  /** Names of processes for the menu. */
  setProcesses(names) {
    const select = this.form.elements.process;
    const known = new Set([...select.options].map((option) => option.value));
    for (const name of names) if (!known.has(name)) select.add(new Option(name, name));
  }

  /** Lines from the socket. */
  push(lines) {
    if (!this.filled) return;
    const fresh = lines.filter((line) => line.id > this.highest && this._matches(line));
    for (const line of lines) this.highest = Math.max(this.highest, line.id);
    if (!fresh.length) return;
    if (!this.following) {
      this.unseen += fresh.length;
      this._pill();
      return;
    }
    this.queue.push(...fresh);
    if (this.queue.length > MOST) this.queue.splice(0, this.queue.length - MOST);
    if (this.queue.length === fresh.length) requestAnimationFrame(() => this._flush());
  }

  /** The newest lines anew: another filter, a gap, or a jump to the end. */
  async reload() {
    this.filled = true;
    this.panel.classList.add("is-busy");
    const answer = await this._ask({ limit: PAGE });
    this.panel.classList.remove("is-busy");
    if (!answer) return;
    this.queue = [];
    this.unseen = 0;
    this.following = true;
    this.older = answer.more;
    this.highest = Math.max(this.highest, answer.last ?? 0);
    this.rows.replaceChildren(...answer.lines.map((line) => lineElement(line, this.query.q)));
    this._notes();
    this._bottom();
  }

  get query() {
    const { process, stream, q } = this.form.elements;
    return { process: process.value, stream: stream.value, q: q.value.trim() };
  }

  _matches(line) {
    const { process, stream, q } = this.query;
    if (process && line.process !== process) return false;
    if (stream && line.stream !== stream) return false;
    return !q || line.text.toLowerCase().includes(q.toLowerCase());
  }

  async _ask(more) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...this.query, ...more })) if (value) query.set(name, String(value));
    const number = (this.asked = (this.asked ?? 0) + 1);
    try {
      const answer = await fetchJson(`${this.url}logs?${query}`);
      return number === this.asked ? answer : null;
    } catch (error) {
      this.note.hidden = false;
      this.note.textContent = error.message;
      return null;
    }
  }

  _flush() {
    const { q } = this.query;
    this.rows.append(...this.queue.map((line) => lineElement(line, q)));
    this.queue = [];
    const surplus = this.rows.childElementCount - MOST;
    for (let index = 0; index < surplus; index++) this.rows.firstElementChild.remove();
    if (surplus > 0) this.older = true;
    this._notes();
    if (this.following) this._bottom();
  }

  async _loadOlder() {
    const first = this.rows.firstElementChild;
    if (!this.older || this.busy || !first) return;
    this.busy = true;
    const answer = await this._ask({ before: first.dataset.id, limit: PAGE });
    this.busy = false;
    if (!answer) return;
    this.older = answer.more;
    const height = this.box.scrollHeight;
    const { q } = this.query;
    this.rows.prepend(...answer.lines.map((line) => lineElement(line, q)));
    this.box.scrollTop += this.box.scrollHeight - height;
    while (this.rows.childElementCount > MOST) this.rows.lastElementChild.remove();
    this._notes();
  }

  _listen() {
    this.box.addEventListener("scroll", () => this._scrolled(), { passive: true });
    this.pill.addEventListener("click", () => this.reload());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.elements.process.addEventListener("change", () => this.reload());
    this.form.elements.stream.addEventListener("change", () => this.reload());
    this.form.elements.wrap.addEventListener("change", (event) => this.rows.classList.toggle("is-wrapped", event.target.checked));
    let timer = 0;
    this.form.elements.q.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.reload(), TYPING);
    });
  }

  _scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.box;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    if (atEnd && !this.following && !this.unseen) this.following = true;
    else if (!atEnd) this.following = false;
    if (scrollTop < NEAR * 4) this._loadOlder();
    this._pill();
  }

  _pill() {
    this.pill.hidden = this.following;
    this.pill.querySelector("span").textContent = this.unseen
      ? `Jump to latest, ${this.unseen.toLocaleString("en")} new`
      : "Jump to latest";
  }

  _notes() {
    const some = this.rows.childElementCount > 0;
    const { process, stream, q } = this.query;
    this.note.hidden = some;
    this.note.textContent = q || process || stream ? "No line matches." : "Nothing written yet.";
    this.panel.querySelector(".log-start").hidden = this.older || !some;
    this._pill();
  }

  _bottom() {
    this.box.scrollTop = this.box.scrollHeight;
  }
}
