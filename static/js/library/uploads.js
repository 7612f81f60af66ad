// @ts-check
// The uploads above the library: what is being checked is asked for until it is done, what was refused is dismissed.

import { toast } from "../toast.js";

const PAUSE = 1500;
const list = /** @type {HTMLElement | null} */ (document.querySelector("[data-uploads]"));

async function remove(row) {
  const response = await fetch(address(row), { method: "DELETE", headers: { "X-CSRFToken": list?.dataset.csrf ?? "" } }).catch(() => null);
  if (!response || (!response.ok && response.status !== 404)) {
    toast("The server does not answer. Nothing was removed.", "error");
    return;
  }
  row.remove();
  if (!list?.children.length) list?.closest("section")?.remove();
}

const address = (row) => `${list?.dataset.uploads}/${row.dataset.upload}`;

async function follow(row) {
  const response = await fetch(address(row), { headers: { Accept: "application/json" } }).catch(() => null);
  const state = response?.ok ? (await response.json()).state : "checking";
  if (state !== "checking") location.reload();
  else setTimeout(() => follow(row), PAUSE);
}

list?.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-remove]") : null;
  if (button) remove(button.closest("[data-upload]"));
});
const checking = document.querySelector("[data-upload-state='checking']");
if (checking) setTimeout(() => follow(checking), PAUSE);
