// @ts-check
// A chart's legend: one button a line with its newest or hovered value; click hides, double click isolates.

const DASHARRAY = { solid: "", dash: "5 3", dot: "1.5 2.5", dashdot: "5 2 1.5 2", longdash: "8 3", longdashdot: "8 2 1.5 2" };
const SVG = "http://www.w3.org/2000/svg";

/** A short piece of the line in its colour and dash. */
export function swatch(colour, dash = "solid") {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("class", "swatch");
  picture.setAttribute("viewBox", "0 0 16 8");
  picture.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", "M0 4H16");
  line.setAttribute("stroke-width", "2.5");
  line.style.stroke = colour; // a CSS variable here follows the theme by itself
  line.setAttribute("stroke-dasharray", DASHARRAY[dash] ?? "");
  picture.append(line);
  return picture;
}

export class Legend {
  constructor(element, view) {
    this.element = element;
    this.view = view;
    this.entries = new Map();
    this.drawn = "";
  }

  /** Draws the buttons anew only when the lines have changed, so that a focused one keeps the focus. */
  show(lines) {
    const signature = JSON.stringify(lines.map((line) => [line.key, line.label, line.colour, line.dash]));
    if (signature !== this.drawn) this._build(lines);
    this.drawn = signature;
    for (const [key, { button }] of this.entries) {
      button.setAttribute("aria-pressed", String(!this.view.hidden.has(key)));
    }
  }

  /** @param {Map<string, string>} values readable values by key */
  values(values) {
    for (const [key, { value }] of this.entries) {
      const text = values.get(key) ?? "";
      if (value.textContent !== text) value.textContent = text;
    }
  }

  _build(lines) {
    this.entries.clear();
    this.element.replaceChildren(...lines.map((line) => this._entry(line, lines.map((one) => one.key))));
  }

  _entry(line, keys) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "chip";
    button.title = `${line.label}: click hides, double click shows it alone`;
    const label = document.createElement("span");
    label.className = "chip-label";
    label.textContent = line.label;
    const value = document.createElement("span");
    value.className = "chip-value";
    button.append(swatch(line.colour, line.dash), label, value);
    button.addEventListener("click", () => this.view.toggle(line.key));
    button.addEventListener("dblclick", () => this.view.isolate(line.key, keys));
    this.entries.set(line.key, { button, value });
    return button;
  }
}
