// @ts-check
// A loss as a line of an inch: its shape, its newest point, and a mark where it stopped being a number.

import { parse } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const PAD = 2;

/** Draws `values` (numbers or the wire's strings) into an svg with a viewBox; nothing when they are what it shows. */
export function drawSpark(svg, values) {
  const key = JSON.stringify(values);
  if (svg.dataset.drawn === key) return;
  svg.dataset.drawn = key;
  const { width, height } = svg.viewBox.baseVal;
  const points = place(values.map(parse), width, height);
  const finite = points.filter((point) => point.y !== null);
  const parts = [];
  if (finite.length > 1) parts.push(shape("path", { d: path(points) }));
  const odd = points.find((point) => point.y === null);
  if (odd) parts.push(shape("circle", { cx: odd.x, cy: PAD + 1, r: 2.2, class: "odd" }));
  const last = points[points.length - 1];
  if (last && last.y !== null) parts.push(shape("circle", { cx: last.x, cy: last.y, r: 1.8 }));
  svg.replaceChildren(...parts);
}

function place(values, width, height) {
  const finite = values.filter((value) => value !== null && Number.isFinite(value));
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low || 1;
  const step = values.length > 1 ? (width - 2 * PAD) / (values.length - 1) : 0;
  return values.map((value, index) => ({
    x: values.length > 1 ? PAD + index * step : width - PAD,
    y: Number.isFinite(value) ? height - PAD - ((value - low) / span) * (height - 2 * PAD) : null,
  }));
}

function path(points) {
  let pen = "M";
  let drawn = "";
  for (const { x, y } of points) {
    if (y === null) {
      pen = "M";
      continue;
    }
    drawn += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  }
  return drawn;
}

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}
