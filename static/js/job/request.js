// @ts-check
// Asking the server for JSON; every failure becomes one sentence for people.

/** An error whose message is a sentence; `retry` false means that asking again cannot help. */
class RequestFailed extends Error {
  constructor(message, retry) {
    super(message);
    this.retry = retry;
  }
}

/** The JSON at `url`. Throws an error with a sentence as its message. */
export async function fetchJson(url, signal) {
  let response;
  try {
    response = await fetch(url, { headers: { Accept: "application/json" }, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestFailed("The server cannot be reached; trying again.", true);
  }
  // A session that ended is answered by the login page.
  if (response.redirected && !response.headers.get("Content-Type")?.includes("json")) {
    throw new RequestFailed("You are logged out. Reload the page to log in again.", false);
  }
  if (response.status === 404) throw new RequestFailed("This job is gone, or you are no longer in its team.", false);
  if (response.status >= 500) throw new RequestFailed(`The server failed (${response.status}); trying again.`, true);
  if (!response.ok) throw new RequestFailed(await reason(response), false);
  return response.json();
}

async function reason(response) {
  const text = await response.text();
  try {
    const { problem, error } = JSON.parse(text);
    return problem ? `${problem.path}: ${problem.message}` : error ?? text;
  } catch {
    return `The server refused the question (${response.status}).`;
  }
}

/** The page's data, from a `<script type="application/json">`. */
export const pageData = (id) => JSON.parse(/** @type {HTMLElement} */ (document.getElementById(id)).textContent ?? "null");
