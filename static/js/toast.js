// @ts-check
// Short notes: a toast for eyes, the live region for screen readers.

const STAY = 6000;

/** A picture of the sprite. */
export function icon(name) {
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  picture.setAttribute("class", "icon");
  picture.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `${document.documentElement.dataset.icons}#${name}`);
  picture.append(use);
  return picture;
}

/** Shows `text`; errors stay until they are dismissed. @param {"success" | "warning" | "error"} kind */
export function toast(text, kind = "success") {
  const box = document.createElement("div");
  box.className = "toast";
  box.dataset.kind = kind;
  const words = document.createElement("span");
  words.textContent = text;
  const dismiss = document.createElement("button");
  dismiss.type = "button";
  dismiss.className = "button quiet square small";
  dismiss.dataset.dismiss = "";
  dismiss.setAttribute("aria-label", "Dismiss");
  dismiss.append(icon("close"));
  box.append(icon(kind === "success" ? "check" : "alert"), words, dismiss);
  document.getElementById("toasts")?.append(box);
  retire(box);
}

/** Lets a toast go by itself unless it tells of an error. */
export function retire(box) {
  if (box.dataset.kind !== "error") setTimeout(() => box.remove(), STAY);
}

/** Says `text` to screen readers, politely. */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (region) region.textContent = text;
}
