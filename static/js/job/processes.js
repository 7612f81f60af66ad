// @ts-check
// The Replicas tab: the job's processes and its model copies, each with its newest gauges.

import { readable } from "../charts/numbers.js";

const cell = (row, text, className = "") => {
  const made = row.insertCell();
  made.textContent = text;
  if (className) made.className = className;
};

const exitText = (exit) => {
  if (exit === null || exit === undefined || exit === "") return "";
  if (typeof exit === "string") return `killed by ${exit}`;
  return exit === 0 ? "0, done" : `code ${exit}`;
};

/** Fills both tables from the job message and the series. */
export function showProcesses(panel, message, set) {
  const processes = panel.querySelector("[data-processes] tbody");
  processes.replaceChildren();
  for (const one of message.processes) {
    const row = processes.insertRow();
    cell(row, one.name, "mono");
    cell(row, one.host);
    cell(row, one.pid === null ? "–" : String(one.pid), "number");
    cell(row, one.devices.join(", ") || "–", "mono");
    cell(row, one.replicas.join(", ") || "–");
    cell(row, one.phase || "–");
    cell(row, exitText(one.exit) || "–", one.exit && one.exit !== 0 ? "is-bad" : "");
  }
  const replicas = panel.querySelector("[data-replicas] tbody");
  replicas.replaceChildren();
  // Only a model that is split over devices says what each of them keeps.
  const split = message.replica_info.some((one) => typeof one.weight_bytes === "number");
  panel.querySelector("[data-weight-bytes]").hidden = !split;
  for (const one of message.replica_info) {
    const row = replicas.insertRow();
    cell(row, String(one.replica), "number");
    cell(row, one.process, "mono");
    cell(row, one.device, "mono");
    cell(row, readable(set.get("utilization", one.replica)?.last, "%"), "number");
    cell(row, readable(set.get("memory", one.replica)?.last, "bytes"), "number");
    cell(row, one.gauge === "device" ? "the device" : "its process");
    if (split) cell(row, readable(one.weight_bytes ?? undefined, "bytes"), "number");
  }
  for (const [name, list] of [["processes", message.processes], ["replicas", message.replica_info]]) {
    panel.querySelector(`[data-${name}]`).hidden = !list.length;
    panel.querySelector(`[data-no-${name}]`).hidden = list.length > 0;
  }
}
