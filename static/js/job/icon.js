// @ts-check
// The browser's tab says how far the job is: its title in words, its icon as a ring in the colour of the state.

import { percent } from "../format.js";
import { resolve } from "../charts/colours.js";

const SIZE = 32;

export class TabIcon {
  constructor() {
    this.link = document.querySelector('link[rel~="icon"]') ?? document.head.appendChild(document.createElement("link"));
    this.canvas = document.createElement("canvas");
    this.canvas.width = SIZE;
    this.canvas.height = SIZE;
    this.drawn = "";
  }

  show(message) {
    const share = Math.floor(message.progress * 50) / 50;
    const running = ["running", "pausing", "paused", "stopping"].includes(message.state) && message.step > 0;
    const lead = running ? percent(message.progress, 0) : message.state_label;
    const title = `${lead} · ${message.name} · Lockstep`;
    if (document.title !== title) document.title = title;
    const signature = `${message.state} ${share}`;
    if (signature === this.drawn) return;
    this.drawn = signature;
    this._ring(message.state, running ? share : 1);
    this.link.rel = "icon";
    this.link.type = "image/png";
    this.link.href = this.canvas.toDataURL("image/png");
  }

  _ring(state, share) {
    const context = this.canvas.getContext("2d");
    const middle = SIZE / 2;
    context.clearRect(0, 0, SIZE, SIZE);
    context.lineWidth = 6;
    context.strokeStyle = resolve(`var(--${state}-soft)`);
    context.beginPath();
    context.arc(middle, middle, 12, 0, 2 * Math.PI);
    context.stroke();
    context.strokeStyle = resolve(`var(--${state})`);
    context.beginPath();
    context.arc(middle, middle, 12, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * share);
    context.stroke();
  }
}
