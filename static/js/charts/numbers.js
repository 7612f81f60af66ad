// @ts-check
// Numbers as a chart's readout shows them: by the unit of their metric.

import { compact, number, parse } from "../format.js";

/** A wire value: non-finite numbers travel as the strings "NaN", "Infinity", "-Infinity". */
export const parseValue = (value) => (typeof value === "number" ? value : Number(value));

/** Seconds with three digits: 12.4 ms, 1.20 s. */
export function seconds(given) {
  const value = parse(given);
  if (value === null || !Number.isFinite(value) || value === 0) return `${number(value)}${value === 0 ? " s" : ""}`;
  if (value < 0.0009995) return `${digits(value * 1e6)} µs`;
  if (value < 0.9995) return `${digits(value * 1e3)} ms`;
  return `${digits(value)} s`;
}

// Always three digits, so that a changing value keeps its width.
const digits = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

/** `value` as its metric's unit is read; a unit of words (samples/s) stands in the chart's title, not here. */
export function readable(value, unit) {
  if (value === undefined || value === null) return "–";
  if (unit === "%") return Number.isFinite(value) ? `${value.toFixed(value < 10 ? 1 : 0)} %` : number(value);
  if (unit === "bytes") return `${compact(value)}B`.replace(/(\d)B$/, "$1 B");
  if (unit === "s" || unit === "s per step") return seconds(value);
  if (unit) return compact(value);
  return number(value);
}

/** 1:02:03 or 2:03 for seconds since the start. */
export function clock(given) {
  const whole = Math.round(Math.abs(given));
  const hours = Math.floor(whole / 3600);
  const minutes = String(Math.floor((whole % 3600) / 60)).padStart(hours ? 2 : 1, "0");
  const sign = given <= -0.5 ? "−" : "";
  return `${sign}${hours ? `${hours}:` : ""}${minutes}:${String(whole % 60).padStart(2, "0")}`;
}
