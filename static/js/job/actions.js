// @ts-check
// Stop, with one question before, and copying of the spec.

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
    const headers = { Accept: "application/json", "X-CSRFToken": new FormData(form).get("csrfmiddlewaretoken") };
    const outcome = await post(form.action, headers);
    button.removeAttribute("aria-busy");
    button.disabled = outcome.ok;
    if (outcome.text) say(outcome.text, outcome.ok ? "warning" : "error");
  });
}

async function post(url, headers) {
  try {
    const response = await fetch(url, { method: "POST", headers });
    if (response.ok) return { ok: true, text: "" };
    if (response.status === 409) return { ok: true, text: "The job had ended already." };
    if (response.status === 403) return { ok: false, text: "You may read this team's jobs, not stop them. Ask an owner of the team." };
    return { ok: false, text: `The server refused to stop the job (${response.status}). Reload the page and try again.` };
  } catch {
    return { ok: false, text: "The server cannot be reached, so the job was not stopped. Try again." };
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
