// @ts-check
// What every page does: menus that close, dialogs that open, toasts that go, times that stay true, the global keys.

import { keepTimes } from "./format.js";
import { bind, showKeys } from "./keys.js";
import { retire } from "./toast.js";

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!target || !menu.contains(target)) menu.removeAttribute("open");
  }
  if (!target) return;
  target.closest("[data-dismiss]")?.closest(".toast, .notice")?.remove();
  const opener = target.closest("[data-open]");
  if (opener instanceof HTMLElement) open(opener.dataset.open ?? "");
});

function open(id) {
  for (const menu of document.querySelectorAll("details.menu[open]")) menu.removeAttribute("open");
  if (id === "keys") showKeys();
  else /** @type {HTMLDialogElement | null} */ (document.getElementById(id))?.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  menu?.removeAttribute("open");
  menu?.querySelector("summary")?.focus();
});

for (const dialog of document.querySelectorAll("dialog.dialog")) {
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) /** @type {HTMLDialogElement} */ (dialog).close();
  });
}
for (const toast of document.querySelectorAll(".toast")) retire(toast);

const fresh = /** @type {HTMLAnchorElement | null} */ (document.querySelector("[data-new-job]"));
if (fresh) bind("n", "New job", () => fresh.click());
bind("?", "Show the keys", showKeys);
keepTimes();
