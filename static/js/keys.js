// @ts-check
// The page's keys: one place that listens, and the dialog that lists them.

/** @type {Map<string, {words: string, run: (event: KeyboardEvent) => void}>} */
const bound = new Map();

/** Binds `key` (as KeyboardEvent.key says it) while nobody types; `words` is its line in the dialog. */
export function bind(key, words, run) {
  bound.set(key, { words, run });
}

const typing = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName) || isText(target));

const isText = (target) =>
  target instanceof HTMLInputElement && !["checkbox", "radio", "button", "submit", "reset"].includes(target.type);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const binding = bound.get(event.key);
  if (!binding) return;
  // Enter and Space belong to a focused link or button.
  if (event.key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary")) return;
  event.preventDefault();
  binding.run(event);
});

const NAMES = { ArrowDown: "↓", ArrowUp: "↑", Enter: "↵", Escape: "Esc" };

/** Opens the dialog with every key that is bound; those of one meaning share a line. */
export function showKeys() {
  const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("keys"));
  const list = dialog?.querySelector("[data-keys]");
  if (!dialog || !list || dialog.open) return;
  const lines = new Map();
  for (const [key, { words }] of bound) lines.set(words, [...(lines.get(words) ?? []), key]);
  list.replaceChildren(...[...lines].flatMap(([words, keys]) => entry(words, keys)));
  dialog.showModal();
}

function entry(words, keys) {
  const term = document.createElement("dt");
  for (const key of keys) {
    const cap = document.createElement("kbd");
    cap.textContent = NAMES[key] ?? key;
    term.append(cap);
  }
  const meaning = document.createElement("dd");
  meaning.textContent = words;
  return [term, meaning];
}
