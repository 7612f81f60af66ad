// @ts-check
// The upload page: a file goes in ranges, so that one that was broken off goes on where it stopped, after a reload too.

import { announce, icon } from "../toast.js";

const RETRIES = [500, 1000, 2000, 4000, 8000, 15000];
const POLL = 1000;
const BUILDS = "Checking: a training host builds the model once in a throw-away process…";
const WORDS = { keras_file: BUILDS, python_module: BUILDS };
const form = /** @type {HTMLFormElement} */ (document.getElementById("upload"));
const picker = /** @type {HTMLInputElement} */ (document.getElementById("file"));
const format = /** @type {HTMLSelectElement} */ (document.getElementById("format"));
const title = /** @type {HTMLInputElement} */ (document.getElementById("name"));
const send = part("send");
const pause = part("pause");
const meter = /** @type {HTMLProgressElement} */ (form.querySelector("progress"));
const RANGE = Number(form.dataset.range);
const token = /** @type {HTMLInputElement} */ (form.elements.namedItem("csrfmiddlewaretoken")).value;

/** @type {File | null} */ let file = null;
/** @type {string | null} */ let upload = null;
let paused = false;
let running = false;
/** @type {XMLHttpRequest | null} */ let request = null;

function part(name) {
  return /** @type {HTMLButtonElement} */ (form.querySelector(`[data-${name}]`));
}

// Choosing ------------------------------------------------------------------------------------------------------------

function choose(chosen) {
  if (!chosen || running) return;
  file = chosen;
  part("drop").toggleAttribute("data-chosen", true);
  part("file-name").textContent = chosen.name;
  part("file-about").textContent = size(chosen.size);
  const option = [...format.options].find((one) => !one.disabled && chosen.name.toLowerCase().endsWith(one.dataset.suffix ?? ""));
  if (option) format.value = option.value;
  if (!title.value || title.dataset.suggested === title.value) title.value = title.dataset.suggested = chosen.name.replace(/\.[^.]*$/, "").slice(0, 80);
  send.disabled = false;
  part("refused").hidden = true;
  showProblems([]);
  showModule();
  const known = localStorage.getItem(key());
  send.textContent = known ? "Go on" : "Upload";
}

function showModule() {
  for (const field of form.querySelectorAll("[data-module]")) field.toggleAttribute("hidden", format.value !== "python_module");
}

/** The same file of the same user for the same team goes on where it stopped. */
const key = () => `upload:${form.dataset.uploads}:${file?.name}:${file?.size}:${file?.lastModified}`;

// Sending -------------------------------------------------------------------------------------------------------------

async function start() {
  if (!file || running) return;
  running = true;
  paused = false;
  const data = new FormData(form); // before its controls are disabled, which would leave them out
  busy(true);
  part("refused").hidden = true;
  showProblems([]);
  try {
    const state = (await resume()) ?? (await begin(data));
    if (state) await work(state);
  } finally {
    running = false;
    busy(false);
  }
}

async function begin(data) {
  data.delete("file");
  data.set("filename", file?.name ?? "");
  data.set("size", String(file?.size ?? 0));
  const response = await fetch(form.dataset.uploads ?? "", { method: "POST", body: data }).catch(() => null);
  const answer = await response?.json().catch(() => null);
  if (!response?.ok) {
    showProblems(answer?.problems ?? [{ message: "The server does not answer, or you may not upload here.", path: "", remedy: "" }]);
    return null;
  }
  localStorage.setItem(key(), answer.id);
  return answer;
}

async function resume() {
  const known = localStorage.getItem(key());
  if (!known) return null;
  const response = await fetch(`${form.dataset.uploads}/${known}`).catch(() => null);
  if (response?.ok) {
    const state = await response.json();
    if (state.state === "receiving" || state.state === "checking") return state;
  }
  localStorage.removeItem(key());
  return null;
}

/** Sends what is left, then waits for the check. */
async function work(state) {
  upload = state.id;
  let failures = 0;
  const began = { at: performance.now(), from: state.received };
  while (state.state === "receiving" && !paused && file) {
    show(state.received, began);
    const answer = await put(state.received, (sent) => show(state.received + sent, began));
    if (answer.status === 0 || answer.status >= 500) {
      if (paused) break;
      if (failures >= RETRIES.length) return stopped(answer.body?.error ?? "The server cannot be reached. What was sent is kept: go on later.");
      part("doing").textContent = "The connection was lost, trying again…";
      await wait(RETRIES[failures++]);
      continue;
    }
    failures = 0;
    if (!answer.body || answer.status === 404 || answer.status === 422 || answer.status === 403) {
      localStorage.removeItem(key());
      showProblems(answer.body?.problems ?? [{ message: "The upload is gone. Begin it again", path: "", remedy: "" }]);
      part("progress").hidden = true;
      return;
    }
    state = answer.body;
  }
  if (state.state === "receiving") return stopped("Paused. What was sent is kept.");
  await settled(state);
}

/** One range. Resolves with the status (0: nothing came back) and the answer. */
function put(offset, progress) {
  return new Promise((resolve) => {
    const sending = new XMLHttpRequest();
    request = sending;
    sending.open("PUT", `${form.dataset.uploads}/${upload}?offset=${offset}`);
    sending.setRequestHeader("X-CSRFToken", token);
    sending.setRequestHeader("Content-Type", "application/octet-stream");
    sending.responseType = "json";
    sending.upload.onprogress = (event) => progress(event.loaded);
    sending.onload = () => resolve({ status: sending.status, body: sending.response });
    sending.onerror = sending.onabort = () => resolve({ status: 0, body: null });
    sending.send(/** @type {File} */ (file).slice(offset, offset + RANGE));
  });
}

async function settled(state) {
  pause.hidden = true;
  while (state.state === "checking") {
    meter.removeAttribute("value");
    part("doing").textContent = WORDS[format.value] ?? "Checking: a training host looks at all of it in a throw-away process…";
    part("pace").textContent = "";
    await wait(POLL);
    const response = await fetch(`${form.dataset.uploads}/${upload}`).catch(() => null);
    if (response?.ok) state = await response.json();
  }
  localStorage.removeItem(key());
  if (state.state === "done") {
    announce("The file is in the library.");
    location.assign(`${form.dataset.library}${state.item}/`);
    return;
  }
  part("progress").hidden = true;
  part("refused").hidden = false;
  part("reason").textContent = state.reason;
  part("output").hidden = !state.output;
  /** @type {HTMLElement} */ (part("output").querySelector("pre")).textContent = state.output;
  announce(`Refused. ${state.reason}`);
  // Kept alive, or whoever leaves the page at once finds it in the library's list of uploads.
  fetch(`${form.dataset.uploads}/${upload}`, { method: "DELETE", headers: { "X-CSRFToken": token }, keepalive: true }).catch(() => null);
}

function stopped(words) {
  part("doing").textContent = words;
  part("pace").textContent = "";
  send.textContent = "Go on";
}

// Showing -------------------------------------------------------------------------------------------------------------

function show(received, began) {
  const total = file?.size ?? 1;
  meter.value = received / total;
  part("progress").hidden = false;
  part("doing").textContent = received < total ? `${size(received)} of ${size(total)}` : "All of it is sent, and is being stored…";
  const seconds = (performance.now() - began.at) / 1000;
  const speed = (received - began.from) / seconds;
  part("pace").textContent = seconds > 1 && speed > 0 && received < total ? `${size(speed)}/s, ${duration((total - received) / speed)} left` : "";
}

function busy(on) {
  send.disabled = on;
  pause.hidden = !on;
  part("cancel").hidden = !on && !upload;
  for (const control of [picker, format, title]) control.disabled = on;
}

function showProblems(problems) {
  part("problems").replaceChildren(...problems.map(line));
}

function line({ path, message, remedy }) {
  const row = document.createElement("li");
  row.className = "error";
  const words = document.createElement("span");
  words.textContent = `${path ? `${path}: ` : ""}${message}.${remedy ? ` ${remedy}.` : ""}`;
  row.append(icon("alert"), words);
  return row;
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  for (; bytes >= 1023.5 && unit < units.length - 1; unit += 1) bytes /= 1024;
  return `${unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toPrecision(3)} ${units[unit]}`;
}

const duration = (seconds) => (seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`);
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Life ----------------------------------------------------------------------------------------------------------------

picker.addEventListener("change", () => choose(picker.files?.[0]));
format.addEventListener("change", showModule);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
pause.addEventListener("click", () => {
  paused = true;
  request?.abort();
});
part("cancel").addEventListener("click", async () => {
  paused = true;
  request?.abort();
  localStorage.removeItem(key());
  await fetch(`${form.dataset.uploads}/${upload}`, { method: "DELETE", headers: { "X-CSRFToken": token } }).catch(() => null);
  location.assign(form.dataset.library ?? "/");
});
const drop = part("drop");
for (const name of ["dragenter", "dragover"]) {
  drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.add("dropping");
  });
}
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("dropping"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  choose(/** @type {DragEvent} */ (event).dataTransfer?.files[0]);
});
showModule();
choose(picker.files?.[0]); // chosen before this script came, or kept by the browser on the way back
