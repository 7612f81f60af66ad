// @ts-check
// The charts' toolbar: x axis, smoothing, reset of the zoom; kept in the address without filling the history.

import { AXES } from "../charts/axis.js";

/** What the address says of the view; nonsense is left out. */
export function fromAddress() {
  const query = new URLSearchParams(location.search);
  const axis = query.get("x") ?? "step";
  const smooth = Number(query.get("smooth") ?? 0);
  return {
    axis: axis in AXES ? axis : "step",
    smooth: smooth >= 0 && smooth <= 0.99 ? smooth : 0,
    log: (query.get("log") ?? "").split(",").filter(Boolean),
  };
}

/** Binds the toolbar's controls to `view`; `changed` is called after each change by a person. */
export function bindToolbar(bar, view, changed) {
  const smoothing = /** @type {HTMLInputElement} */ (bar.querySelector('[name="smooth"]'));
  const reset = /** @type {HTMLButtonElement} */ (bar.querySelector('[data-action="reset-zoom"]'));
  const show = () => {
    for (const radio of bar.querySelectorAll('[name="x"]')) radio.checked = radio.value === view.axis;
    if (document.activeElement !== smoothing) smoothing.value = String(view.smooth);
    bar.querySelector('[data-field="smooth"]').textContent = view.smooth ? view.smooth.toFixed(2) : "off";
    reset.hidden = !view.range;
  };
  for (const radio of bar.querySelectorAll('[name="x"]')) {
    radio.addEventListener("change", () => {
      view.setAxis(radio.value);
      changed("push");
    });
  }
  smoothing.addEventListener("input", () => {
    view.setSmooth(Number(smoothing.value));
    changed("replace");
  });
  reset.addEventListener("click", () => view.setRange(null));
  view.addEventListener("change", show);
  view.addEventListener("zoom", show);
  show();
}

/** Writes the view into the address, `also` other parameters; what is usual is left out. */
export function toAddress(view, mode, also = {}) {
  const query = new URLSearchParams(location.search);
  const wanted = { x: view.axis === "step" ? "" : view.axis, smooth: view.smooth || "", log: [...view.log].join(","), ...also };
  for (const [name, value] of Object.entries(wanted)) {
    if (value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString().replaceAll("%2C", ",");
  const url = `${location.pathname}${text ? `?${text}` : ""}${location.hash}`;
  if (url === location.pathname + location.search + location.hash) return;
  if (mode === "push") history.pushState(null, "", url);
  else history.replaceState(null, "", url);
}
