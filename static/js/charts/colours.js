// @ts-check
// Colours are CSS variables: figures name them as var(--x), and here they become what the theme of the moment says.

export const PALETTE = 10;
export const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const VARIABLE = /var\((--[\w-]+)\)/g;

const cache = new Map();
const listeners = new Set();

/** Calls `listener` after every change of the theme. */
export const onTheme = (listener) => listeners.add(listener);

function forget() {
  cache.clear();
  for (const listener of listeners) listener();
}
new MutationObserver(forget).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", forget);

/** The value of a text that may hold var(--x). */
export function resolve(text) {
  return text.replace(VARIABLE, (whole, name) => {
    if (!cache.has(name)) cache.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    return cache.get(name) || "#888";
  });
}

/** A deep copy of a figure's layout with every variable resolved. */
export function resolveAll(value) {
  if (typeof value === "string") return value.includes("var(") ? resolve(value) : value;
  if (Array.isArray(value)) return value.map(resolveAll);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, resolveAll(entry)]));
}

/** The colour of number `index` (from 1) of the palette, as a variable. */
export const seriesColour = (index) => `var(--series-${((index - 1) % PALETTE) + 1})`;

/** A job's colour follows from its id alone, so that it keeps it everywhere; of several with one colour the later are dashed. */
export function jobStyles(ids) {
  const shared = new Map();
  const styles = new Map();
  for (const id of [...ids].sort((a, b) => a - b)) {
    const colour = seriesColour(id);
    const before = shared.get(colour) ?? 0;
    shared.set(colour, before + 1);
    styles.set(id, { colour, dash: DASHES[before % DASHES.length] });
  }
  return styles;
}
