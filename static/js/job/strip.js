// @ts-check
// The head of the job page: state, phase, progress and the figures of the moment.

import { compact, duration, integer, number, parse, percent } from "../format.js";
import { readable } from "../charts/numbers.js";

export const ENDED = new Set(["succeeded", "failed", "cancelled"]);

/** Writes `text` only where it changes, so that nothing flickers and screen readers stay quiet. */
function put(root, field, text) {
  for (const element of root.querySelectorAll(`[data-field="${field}"]`)) {
    if (element.textContent !== text) element.textContent = text;
  }
}

const INSTEAD = {
  mean_absolute_error: "Absolute error",
  perplexity: "Perplexity",
  reconstruction_error: "Error",
  generator_loss: "Generator loss",
};

export class Strip {
  /** @param {HTMLElement} page @param {(text: string) => void} announce */
  constructor(page, announce) {
    this.page = page;
    this.announce = announce;
    this.message = null;
    setInterval(() => this._clock(), 1000);
  }

  show(message) {
    const before = this.message;
    this.message = message;
    const { page } = this;
    page.dataset.state = message.state;
    page.toggleAttribute("data-begun", message.step > 0);
    this._badges(message);
    put(page, "phase_text", capital(message.phase_text));
    put(page, "eta", ENDED.has(message.state) || message.state === "paused" ? "–" : duration(message.eta_seconds));
    put(page, "throughput", compact(message.throughput));
    put(page, "step_time", readable(parse(message.step_time), "s"));
    put(page, "loss", number(message.latest.loss));
    this._metric(message.latest);
    put(page, "epoch", message.epochs ? `${integer(message.epoch)} / ${integer(message.epochs)}` : integer(message.epoch));
    this._progress(message);
    this._failure(message);
    this._clock();
    if (before && before.state !== message.state) this.announce(`${message.name}: ${message.state_label}. ${message.cause || message.phase_text}`);
  }

  // What tells best how good the model is: accuracy, or what its task reports instead.
  _metric(latest) {
    const name = Object.keys(INSTEAD).find((one) => latest[one] !== undefined);
    put(this.page, "metric_label", name ? INSTEAD[name] : "Accuracy");
    const accuracy = latest.accuracy === undefined ? "–" : percent(latest.accuracy);
    put(this.page, "accuracy", name ? number(latest[name]) : accuracy);
  }

  _badges(message) {
    const source = this.page.querySelector(`[data-state-badge="${message.state}"]`);
    const place = this.page.querySelector("[data-state-place]");
    if (!source || place.dataset.shown === message.state) return;
    place.dataset.shown = message.state;
    place.replaceChildren(source.content.cloneNode(true));
  }

  _progress(message) {
    const bar = this.page.querySelector("progress");
    const started = message.step > 0 || ENDED.has(message.state);
    if (started || message.state === "queued") bar.value = message.progress;
    else bar.removeAttribute("value");
    put(this.page, "progress", started ? percent(message.progress, message.progress === 1 ? 0 : 1) : "");
  }

  _failure(message) {
    const box = this.page.querySelector(".failure");
    box.hidden = !(message.cause && ENDED.has(message.state));
    box.classList.toggle("is-quiet", message.state !== "failed");
    put(box, "cause", message.cause || "");
    put(box, "failed_process", message.failed_process || "");
    box.querySelector("[data-failed]").hidden = !message.failed_process;
    put(box, "log_tail", message.log_tail || "");
    box.querySelector("details").hidden = !message.log_tail;
  }

  _clock() {
    const { message } = this;
    if (!message) return;
    const resting = !message.started && message.earlier_seconds > 0;
    const from = Date.parse(message.started ?? message.created);
    const to = Date.parse(message.ended ?? message.paused ?? "") || Date.now();
    const now = resting ? 0 : Math.max(0, Math.round((to - from) / 1000));
    put(this.page, "elapsed", duration(now + Math.round(message.earlier_seconds)));
    put(this.page, "elapsed_label", message.started || resting ? "Elapsed" : "Waiting");
  }
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
