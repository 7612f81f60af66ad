// @ts-check
// Numbers with their units, durations and times, as every page writes them. figures.py writes the same on the server.

export const NONE = "–";
const SI = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** A value from the wire, where non-finite numbers are the strings "NaN", "Infinity", "-Infinity"; null stays null. */
export function parse(value) {
  if (value === null || value === undefined || value === "") return null;
  return typeof value === "number" ? value : Number(value);
}

/** What stands for a number that is none: "NaN", "∞", "−∞"; null for a finite one. */
export function nonFinite(value) {
  if (Number.isFinite(value)) return null;
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "∞" : "−∞";
}

/** A whole number with thousands separators: 12,400. */
export function integer(given) {
  const value = parse(given);
  if (value === null) return NONE;
  return nonFinite(value) ?? Math.round(value).toLocaleString("en").replace("-", "−");
}

/** A number with `digits` significant digits, all shown so that columns stand still: 0.04310, 1.204e-7. */
export function number(given, digits = 4) {
  const value = parse(given);
  if (value === null) return NONE;
  const odd = nonFinite(value);
  if (odd) return odd;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(digits - 1).replace("e+", "e").replaceAll("-", "−");
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  const places = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return value.toLocaleString("en", places).replace("-", "−");
}

/** A share of one as percent: 0.9417 becomes 94.17 %. */
export function percent(given, decimals = 2) {
  const value = parse(given);
  if (value === null) return NONE;
  return nonFinite(value) ?? `${(value * 100).toFixed(decimals)} %`;
}

/** Three digits and a prefix, then the unit: 12.4 k samples/s. */
export function compact(given, unit = "") {
  const value = parse(given);
  if (value === null) return NONE;
  const odd = nonFinite(value);
  const [scale, prefix] = SI.find(([bound]) => Math.abs(value) >= bound * 0.9995) ?? [1, ""];
  const text = odd ?? digits3(value / scale) + (prefix ? ` ${prefix}` : "");
  return unit ? `${text} ${unit}` : text;
}

function digits3(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** Bytes in binary units: 1.50 GiB. */
export function bytes(given) {
  let value = parse(given);
  if (value === null) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (Math.abs(value) >= 1023.5 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit ? digits3(value) : Math.round(value)} ${units[unit]}`;
}

/** A duration in the two largest units: 3 d 4 h, 1 h 20 m, 2 m 05 s, 12 s, 340 ms. */
export function duration(given) {
  const seconds = parse(given);
  if (seconds === null || !Number.isFinite(seconds)) return NONE;
  if (seconds < 0) return duration(0);
  if (seconds < 1 && seconds > 0) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${pad(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} m`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

const pad = (value) => String(value).padStart(2, "0");

/** How long ago, coarse enough to stand still: now, 12 s, 4 m, 3 h, 2 d, 5 mo, 1 y. */
export function ago(iso, now = Date.now()) {
  if (!iso) return NONE;
  const seconds = Math.max(0, (now - Date.parse(iso)) / 1000);
  if (seconds < 5) return "now";
  const steps = [[60, 1, "s"], [3600, 60, "m"], [86400, 3600, "h"], [86400 * 60, 86400, "d"], [86400 * 730, 86400 * 30, "mo"]];
  const [, size, unit] = steps.find(([bound]) => seconds < bound) ?? [0, 86400 * 365, "y"];
  return `${Math.floor(seconds / Number(size))} ${unit}`;
}

/** The exact time in the reader's own zone, for titles. */
export function exact(iso) {
  if (!iso) return "";
  return new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
}

/** Keeps every `<time data-ago>` of the page current: relative text, exact time on hover. Returns a stop function. */
export function keepTimes(root = document) {
  const refresh = () => {
    for (const element of root.querySelectorAll("time[data-ago]")) writeTime(element);
  };
  refresh();
  const timer = setInterval(refresh, 5000);
  return () => clearInterval(timer);
}

/** Writes one `<time data-ago datetime=...>`; touches the page only when the text changes. */
export function writeTime(element) {
  const iso = element.getAttribute("datetime");
  const text = ago(iso);
  if (element.textContent !== text) element.textContent = text;
  if (element.dataset.exactFor !== iso) {
    element.dataset.exactFor = iso ?? "";
    element.title = exact(iso);
  }
}
