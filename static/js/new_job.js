// @ts-check
// The new-job page: asks the server what it thinks of the form while it is typed, and turns form into YAML and back.

import { bind } from "./keys.js";
import { announce, icon, toast } from "./toast.js";
import { acceptFiles } from "./yaml_drop.js";

const DELAY = 250;
const form = /** @type {HTMLFormElement} */ (document.getElementById("new-job"));
const view = /** @type {HTMLInputElement} */ (form.elements.namedItem("view"));
const text = /** @type {HTMLTextAreaElement} */ (document.getElementById("yaml"));
const summary = /** @type {HTMLElement} */ (document.getElementById("summary"));
const panels = { form: element("view-form"), yaml: element("view-yaml") };
const tabs = [...form.querySelectorAll("[data-view]")];

let timer = 0;
let asked = 0;
/** @type {AbortController | null} */ let running = null;
let suggested = form.dataset.suggested ?? "";

function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

// Asking --------------------------------------------------------------------------------------------------------------

function askSoon() {
  clearTimeout(timer);
  timer = setTimeout(ask, DELAY);
}

/** Sends everything that is typed to the server; only the newest answer counts. */
async function ask() {
  clearTimeout(timer);
  running?.abort();
  running = new AbortController();
  const mine = ++asked;
  summary.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(form.dataset.check ?? "", { method: "POST", body: body(), signal: running.signal });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    const answer = await response.json();
    if (mine === asked) show(answer);
    return answer;
  } catch (error) {
    if (mine === asked && error.name !== "AbortError") unreachable();
    return null;
  } finally {
    if (mine === asked) summary.setAttribute("aria-busy", "false");
  }
}

function body() {
  const data = new FormData(form);
  if (view.value === "form") data.delete("yaml");
  return data;
}

function unreachable() {
  const note = document.createElement("p");
  note.className = "verdict";
  note.dataset.kind = "waits";
  note.append(icon("alert"), "The server does not answer. What you typed is kept; the next change asks again.");
  summary.replaceChildren(note);
}

// Showing -------------------------------------------------------------------------------------------------------------

function show(answer) {
  summary.innerHTML = answer.summary;
  showErrors(answer.problems);
  showList(answer.problems);
  if (view.value === "form") {
    text.value = answer.yaml;
    showUnfit(answer.unfit);
    showFacts(answer.facts);
    showNames(answer.names_in_file);
    suggest(answer.suggested_name);
  }
}

/** Follows the choices with the name until somebody types one. */
function suggest(name) {
  const input = /** @type {HTMLInputElement} */ (element("field-name"));
  if (input.value === suggested && document.activeElement !== input) input.value = name;
  suggested = name;
  input.placeholder = name;
}

function showErrors(problems) {
  const byField = new Map();
  for (const problem of problems) byField.set(problem.field, [...(byField.get(problem.field) ?? []), problem]);
  for (const box of form.querySelectorAll("[data-errors]")) {
    const own = byField.get(box.getAttribute("data-errors")) ?? [];
    fill(box, own);
    const control = form.elements.namedItem(box.getAttribute("data-errors") ?? "");
    if (control instanceof HTMLElement) control.toggleAttribute("aria-invalid", own.length > 0);
    if (control instanceof HTMLElement && own.length) control.setAttribute("aria-invalid", "true");
  }
  fill(element("yaml-errors"), view.value === "yaml" ? problems : [], "li");
  text.toggleAttribute("aria-invalid", false);
  if (view.value === "yaml" && problems.length) text.setAttribute("aria-invalid", "true");
}

/** Keeps the list on top of a refused form true: what is mended leaves it. */
function showList(problems) {
  const box = element("problems");
  const list = box.querySelector(".problem-list");
  if (!list) return;
  if (!problems.length) {
    box.replaceChildren();
    announce("Everything is mended.");
    return;
  }
  const title = box.querySelector("h2");
  if (title) title.textContent = problems.length === 1 ? "One thing to mend" : `${problems.length} things to mend`;
  list.replaceChildren(...problems.map(entry));
}

function entry(problem) {
  const link = document.createElement("a");
  link.href = view.value === "yaml" ? "#yaml" : `#field-${problem.field.replaceAll(".", "-")}`;
  link.textContent = said(problem, true);
  const item = document.createElement("li");
  item.append(link);
  return item;
}

function fill(box, problems, tag = "p") {
  const words = problems.map((problem) => said(problem, tag === "li"));
  if (box.textContent.trim() === words.join("").trim() && words.length === box.children.length) return;
  box.replaceChildren(...words.map((one) => line(one, tag)));
}

function said({ path, message, value, remedy }, whole) {
  const head = whole && path ? `${path}: ${message}` : message[0].toUpperCase() + message.slice(1);
  const given = whole && value !== null ? ` (got ${value})` : "";
  return `${head}${given}.${remedy ? ` ${remedy.replace(/\.$/, "")}.` : ""}`;
}

function line(words, tag) {
  const row = document.createElement(tag);
  row.className = "error";
  const span = document.createElement("span");
  span.textContent = words;
  row.append(icon("alert"), span);
  return row;
}

/** Why a choice does not fit, beside it. */
function note(place, reason) {
  const words = /** @type {HTMLElement | null} */ (place?.querySelector("[data-unfit]"));
  if (!words || (!reason && words.hidden)) return;
  words.textContent = reason.slice(0, 1).toUpperCase() + reason.slice(1);
  words.hidden = !reason;
}

function showUnfit(unfit) {
  for (const radio of form.querySelectorAll(".choice input")) {
    const input = /** @type {HTMLInputElement} */ (radio);
    const reason = unfit[input.name]?.[input.value] ?? "";
    input.disabled = Boolean(reason) && !input.checked;
    note(input.closest(".choice"), reason);
  }
  for (const column of form.querySelectorAll(".column")) fold(column);
  for (const box of panels.form.querySelectorAll(".field[data-widget=checkbox] input")) {
    const input = /** @type {HTMLInputElement} */ (box);
    const reason = unfit[input.name]?.on ?? "";
    input.disabled = Boolean(reason) && !input.checked;
    note(input.closest(".field"), reason);
  }
  for (const text of panels.form.querySelectorAll(".field[data-widget=text] input, .field[data-widget=number] input")) {
    const input = /** @type {HTMLInputElement} */ (text);
    const reason = input.value === input.placeholder ? (unfit[input.name]?.[""] ?? "") : "";
    input.disabled = Boolean(reason);
    note(input.closest(".field"), reason);
  }
  for (const select of panels.form.querySelectorAll(".choice-options select, .training select")) {
    const box = /** @type {HTMLSelectElement} */ (select);
    for (const option of box.options) {
      const reason = unfit[box.name]?.[option.value] ?? "";
      option.dataset.words ??= option.textContent?.replace(/ \(.*\)$/s, "") ?? "";
      option.textContent = reason ? `${option.dataset.words} (${reason})` : option.dataset.words;
      option.disabled = Boolean(reason) && !option.selected;
    }
  }
}

/** Puts what does not fit out of sight, and what fits again back among its group. */
function fold(column) {
  const folded = column.querySelector("[data-fold]");
  for (const choice of column.querySelectorAll(".choice[data-home]")) {
    const home = choice.querySelector("input").disabled ? folded : column.querySelector(`[data-group="${choice.dataset.home}"]`);
    if (choice.parentElement === home) continue;
    const after = [...home.querySelectorAll(".choice")].find((one) => titleOf(one).localeCompare(titleOf(choice)) > 0);
    home.insertBefore(choice, after ?? null);
  }
  const count = folded.querySelectorAll(".choice").length;
  folded.hidden = count === 0;
  folded.querySelector("[data-count]").textContent = String(count);
}

const titleOf = (choice) => choice.querySelector(".choice-title").textContent;

/** A model's figures depend on the data that is chosen. */
function showFacts(facts) {
  for (const [name, words] of Object.entries(facts)) {
    const line = document.querySelector(`#about-model-${CSS.escape(name)} .choice-facts`);
    line?.replaceChildren(...words.map((word) => Object.assign(document.createElement("span"), { textContent: word })));
  }
}

/** What the chosen file has names for is offered where such a name is typed. */
function showNames(named) {
  for (const [field, names] of Object.entries(named)) {
    const list = document.getElementById(`words-field-${field.replaceAll(".", "-")}`);
    list?.replaceChildren(...names.map((name) => Object.assign(document.createElement("option"), { value: name })));
  }
}

/** Columns that were named of one file are not those of the next. */
function forgetNames(file) {
  const plugin = file.value.split("=")[0];
  for (const key of ["target", "features", "ignore"]) {
    const input = form.elements.namedItem(`dataset.${plugin}.${key}`);
    if (input instanceof HTMLInputElement || input instanceof HTMLTextAreaElement) input.value = "";
  }
}

// Two views of one spec -----------------------------------------------------------------------------------------------

async function turnTo(name) {
  if (view.value === name) return;
  if (name === "yaml") await ask();
  else if (!(await drawForm())) return;
  view.value = name;
  for (const [key, panel] of Object.entries(panels)) panel.hidden = key !== name;
  for (const tab of tabs) tab.setAttribute("aria-selected", String(tab.getAttribute("data-view") === name));
  history.replaceState(null, "", address(name));
  if (name === "yaml") text.focus();
  ask();
}

function address(name) {
  const url = new URL(location.href);
  if (name === "yaml") url.searchParams.set("view", "yaml");
  else url.searchParams.delete("view");
  return url;
}

/** Asks for the form that says what the text says; false, with the reasons shown, when there is none. */
async function drawForm() {
  const data = new FormData();
  data.set("csrfmiddlewaretoken", /** @type {HTMLInputElement} */ (form.elements.namedItem("csrfmiddlewaretoken")).value);
  data.set("yaml", text.value);
  const response = await fetch(form.dataset.fields ?? "", { method: "POST", body: data }).catch(() => null);
  if (response?.ok) {
    panels.form.innerHTML = await response.text();
    return true;
  }
  if (response?.status === 422) {
    showErrors((await response.json()).problems);
    text.focus();
    announce("The text cannot be shown as a form yet. The reasons stand below it.");
  } else {
    toast("The server does not answer. The text is kept.", "error");
  }
  return false;
}

// Life ----------------------------------------------------------------------------------------------------------------

form.addEventListener("input", askSoon);
form.addEventListener("change", (event) => {
  if (!(event.target instanceof HTMLInputElement && event.target.type === "radio")) return;
  if (event.target.name === "dataset.name" && event.target.value.includes("=")) forgetNames(event.target);
  ask();
});
for (const tab of tabs) {
  tab.addEventListener("click", (event) => {
    event.preventDefault();
    turnTo(tab.getAttribute("data-view"));
  });
}
form.addEventListener("submit", () => {
  const button = /** @type {HTMLButtonElement} */ (element("submit"));
  button.setAttribute("aria-busy", "true");
  button.textContent = "Starting…";
  setTimeout(() => (button.disabled = true));
});
// Back from the job's page the browser shows this one as it was left: with its button still busy.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  const button = /** @type {HTMLButtonElement} */ (element("submit"));
  button.disabled = false;
  button.removeAttribute("aria-busy");
  button.textContent = "Start job";
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
form.addEventListener("click", (event) => {
  const remove = event.target instanceof Element ? event.target.closest("[data-remove-resume]") : null;
  if (remove) beginAnew();
});
form.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest(".problem-list a") : null;
  if (!link) return;
  event.preventDefault();
  goTo(link.getAttribute("href")?.slice(1) ?? "");
});

/** The job goes on from no checkpoint. */
function beginAnew() {
  for (const name of ["resume.job", "resume.checkpoint"]) {
    const input = form.elements.namedItem(name);
    if (input instanceof HTMLInputElement) input.value = "";
  }
  const training = form.querySelector('[name="kind"][value="train"]');
  if (training instanceof HTMLInputElement) training.checked = true;
  /** @type {HTMLElement} */ (form.querySelector("[data-going-on]")).dataset.goingOn = "no";
  announce("The job begins anew.");
  ask();
}

/** Leads to a field, opening what is folded over it. */
function goTo(id) {
  const target = document.getElementById(id);
  for (let fold = target?.closest("details"); fold; fold = fold.parentElement?.closest("details")) fold.open = true;
  const control = target?.matches("input, select, textarea") ? target : target?.querySelector("input:checked, input, select");
  const goal = /** @type {HTMLElement | null} */ (control ?? target);
  goal?.scrollIntoView({ block: "center" });
  goal?.focus({ preventScroll: true });
}

/** Opens the folds that hide a field with an error, so that nothing wrong is out of sight. */
for (const error of panels.form.querySelectorAll("details .error")) {
  const fold = error.closest("details");
  if (fold) fold.open = true;
}
acceptFiles(text, panels.yaml, (content) => {
  text.value = content;
  ask();
});
bind("y", "Turn to YAML or back to the form", () => turnTo(view.value === "yaml" ? "form" : "yaml"));
if (form.dataset.refused) element("problems").focus();
ask();
