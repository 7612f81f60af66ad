// @ts-check
// Stop, with one question before; pause, resume and checkpoint at once, since nothing is lost by them; copying of the spec.

const VERBS = {
  pause: ["pause", "The job does not run any more, so there is nothing to pause."],
  resume: ["resume", "The job cannot go on: it is not at rest, or no checkpoint of it is in the artifact store."],
  save: ["save a checkpoint of", "The job does not run any more, so there is nothing to save."],
};

/** Binds the Stop button to its dialog; the form posts, and the page learns the rest from its socket. */
export function bindStop(button, dialog, say) {
  const form = dialog.querySelector("form");
  button.addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  form.addEventListener("submit", async (event) => {
    if (event.submitter?.value === "cancel") return;
    event.preventDefault();
    dialog.close();
    button.disabled = true;
    button.setAttribute("aria-busy", "true");
    const outcome = await post(form, "stop", "The job had ended already.");
    button.removeAttribute("aria-busy");
    button.disabled = outcome.ok;
    if (outcome.text) say(outcome.text, outcome.ok ? "warning" : "error");
  });
}

/** Binds a one-button form that asks something of the job; the page learns the rest from its socket. */
export function bindVerb(form, say, onJob) {
  const button = form.querySelector("button");
  const [verb, late] = VERBS[form.dataset.verb];
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    button.setAttribute("aria-busy", "true");
    const outcome = await post(form, verb, late);
    button.removeAttribute("aria-busy");
    button.disabled = false;
    if (outcome.job) onJob(outcome.job);
    if (outcome.text) say(outcome.text, outcome.ok ? "warning" : "error");
  });
}

async function post(form, verb, late) {
  const headers = { Accept: "application/json", "X-CSRFToken": new FormData(form).get("csrfmiddlewaretoken") };
  try {
    const response = await fetch(form.action, { method: "POST", headers });
    if (response.ok) return { ok: true, text: "", job: await response.json() };
    if (response.status === 409) {
      const { why, ...job } = await response.json();
      return { ok: !why, text: why || late, job };
    }
    if (response.status === 403) return { ok: false, text: `You may read this team's jobs, not ${verb} them. Ask an owner of the team.` };
    return { ok: false, text: `The server refused to ${verb} the job (${response.status}). Reload the page and try again.` };
  } catch {
    return { ok: false, text: `The server cannot be reached, so nothing was done to ${verb} the job. Try again.` };
  }
}

/** Copies the text of `source` and says so on the button for a moment. */
export function bindCopy(button, source) {
  const label = button.querySelector("span");
  const usual = label.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      label.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(source);
      label.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => (label.textContent = usual), 2000);
  });
}
