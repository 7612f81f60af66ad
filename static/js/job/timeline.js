// @ts-check
// The Events tab: what happened to the job, oldest first, out of its message and its series.

import { bytes, duration, exact, integer, number } from "../format.js";

const MOST_EVALUATIONS = 10;

export class Timeline {
  constructor(list, empty) {
    this.list = list;
    this.empty = empty;
    this.drawn = "";
  }

  show(message, set) {
    const events = this._events(message, set).sort((a, b) => a.time - b.time);
    const signature = JSON.stringify(events);
    if (signature === this.drawn) return;
    this.drawn = signature;
    this.empty.hidden = events.length > 0;
    this.list.replaceChildren(...events.map((event) => item(event, Date.parse(message.created))));
  }

  _events(message, set) {
    const at = (iso, text, kind) => (iso ? [{ time: Date.parse(iso), text, kind }] : []);
    return [
      ...message.history.map((one) => ({ ...one, time: Date.parse(one.time) })),
      ...at(message.first_step, "First step finished", "running"),
      ...message.checkpoints.flatMap((one) => at(one.created, `Checkpoint at step ${integer(one.step)} (${bytes(one.bytes)})`, "running")),
      ...evaluations(set),
      ...oddities(set),
      ...message.artifacts.map((one) => artifact(one, message)),
    ];
  }
}

function artifact(one, message) {
  const time = one.time ? one.time * 1000 : Date.parse(message.ended ?? message.created);
  return { time, text: `Saved ${one.name} (${bytes(one.bytes)})`, kind: "succeeded" };
}

function evaluations(set) {
  const loss = set.get("val_loss");
  if (!loss) return [];
  const accuracy = new Map(zip(set.get("val_accuracy")));
  const found = zip(loss).map(([step, value, time]) => {
    const also = accuracy.has(step) ? `, accuracy ${number(accuracy.get(step))}` : "";
    return { time: time * 1000, text: `Evaluated at step ${integer(step)}: loss ${number(value)}${also}`, kind: "" };
  });
  return found.slice(-MOST_EVALUATIONS);
}

function oddities(set) {
  return [...set.names].flatMap((name) => {
    const series = set.get(name);
    const index = series.values.findIndex((value) => !Number.isFinite(value));
    if (index < 0) return [];
    const text = `${name.replaceAll("_", " ")} became ${number(series.values[index])} at step ${integer(series.steps[index])}`;
    return [{ time: series.times[index] * 1000, text, kind: "failed" }];
  });
}

const zip = (series) => (series ? series.steps.map((step, index) => [step, series.values[index], series.times[index]]) : []);

function item({ time, text, kind = "" }, origin) {
  const made = document.createElement("li");
  if (kind) made.dataset.kind = kind;
  const when = document.createElement("time");
  when.dateTime = new Date(time).toISOString();
  when.title = exact(when.dateTime);
  when.textContent = `+${duration(Math.max(0, (time - origin) / 1000))}`;
  const words = document.createElement("span");
  words.textContent = text;
  made.append(when, words);
  return made;
}
