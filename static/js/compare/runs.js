// @ts-check
// The panel of compared jobs: hide, isolate, point out, remove.

import { swatch } from "../charts/legend.js";
import { keyOf } from "./curves.js";

const POINTED = 60;

/** Draws every job's piece of line where the page left a place for it. */
export function fillSwatches(root, styles) {
  for (const place of root.querySelectorAll("[data-swatch]:empty")) {
    const { colour, dash } = styles.get(Number(place.dataset.swatch));
    place.append(swatch(colour, dash));
  }
}

/** Binds rows of `list` ([data-job]) to `view`; `remove` is called with the id of the one to leave out. */
export function bindRuns(list, view, remove) {
  const rows = /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[data-job]")]);
  const keys = rows.map((row) => keyOf(row.dataset.job));
  const show = () => {
    for (const row of rows) {
      const hidden = view.hidden.has(keyOf(row.dataset.job));
      row.classList.toggle("is-hidden", hidden);
      row.querySelector("[data-action=hide]").setAttribute("aria-pressed", String(!hidden));
    }
  };
  list.addEventListener("click", (event) => {
    const button = event.target.closest("[data-action]");
    if (!button) return;
    const id = button.closest("[data-job]").dataset.job;
    if (button.dataset.action === "hide") view.toggle(keyOf(id));
    if (button.dataset.action === "isolate") view.isolate(keyOf(id), keys);
    if (button.dataset.action === "remove") remove(Number(id));
  });
  list.addEventListener("dblclick", (event) => {
    const row = event.target.closest("[data-action=hide]")?.closest("[data-job]");
    if (row) view.isolate(keyOf(row.dataset.job), keys);
  });
  view.addEventListener("change", show);
  show();
}

/** Lines of the job whose row the pointer or the focus is on stand out, in any list of `root`. */
export function bindHighlight(root, view) {
  let timer = 0;
  const point = (target) => {
    const id = target instanceof Element ? target.closest("[data-job]")?.dataset.job : undefined;
    clearTimeout(timer);
    timer = window.setTimeout(() => view.setHighlight(id ? keyOf(id) : null), POINTED);
  };
  root.addEventListener("pointerover", (event) => point(event.target));
  root.addEventListener("pointerleave", () => point(null));
  root.addEventListener("focusin", (event) => point(event.target));
  root.addEventListener("focusout", () => point(null));
}

/** The row of the line nearest to the pointer in a chart is marked in the panel. */
export function markNearest(list, view) {
  let marked = null;
  view.addEventListener("hover", () => {
    const key = view.pointer ? view.nearestKey : null;
    if (key === marked) return;
    marked = key;
    for (const row of list.querySelectorAll("[data-job]")) row.classList.toggle("is-nearest", keyOf(row.dataset.job) === key);
  });
}

/** A `row` message of the team's socket: the job's state in the panel. */
export function showState(list, message, badges) {
  const place = list.querySelector(`[data-job="${message.id}"] [data-state-place]`);
  if (!place || place.dataset.shown === message.state) return;
  place.dataset.shown = message.state;
  place.replaceChildren(badges.querySelector(`[data-state-badge="${message.state}"]`).content.cloneNode(true));
}
