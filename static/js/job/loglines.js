// @ts-check
// One log line on the page: control codes stripped, what was searched for marked.

const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-_])/g;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** What a terminal would show of the line: no colour codes, and of a rewritten line the last writing only. */
export function clean(text) {
  const visible = text.replace(ANSI, "").replace(/\r+$/, "");
  return visible.slice(visible.lastIndexOf("\r") + 1).replace(CONTROL, "");
}

const clockOf = (seconds) => {
  const time = new Date(seconds * 1000);
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
};

/** The row of one line; `query` is marked in it. */
export function lineElement(line, query) {
  const row = document.createElement("div");
  row.className = line.stream === "stderr" ? "log-line is-stderr" : "log-line";
  row.dataset.id = String(line.id);
  const time = document.createElement("time");
  time.textContent = clockOf(line.time);
  time.title = new Date(line.time * 1000).toLocaleString();
  const process = document.createElement("span");
  process.className = "log-process";
  process.textContent = line.process;
  const text = document.createElement("span");
  text.className = "log-text";
  text.append(...marked(clean(line.text), query));
  row.append(time, process, text);
  return row;
}

function marked(text, query) {
  if (!query) return [text];
  const parts = [];
  const [low, wanted] = [text.toLowerCase(), query.toLowerCase()];
  let from = 0;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, from)) {
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + query.length);
    parts.push(text.slice(from, at), mark);
    from = at + query.length;
  }
  return [...parts, text.slice(from)];
}
