// @ts-check
// The results table: sorted by a click on a column, refreshed while a compared job still runs.

const PAUSE = 4000;

export class Results {
  /** @param {HTMLElement} place holds the fragment @param {() => string} url of the fragment for the present view */
  constructor(place, url, redrawn) {
    Object.assign(this, { place, url, redrawn });
    this.sorted = null;
    this.due = 0;
    place.addEventListener("click", (event) => this._clicked(event));
  }

  /** Asks for the table again, soon and not more often than every few seconds. */
  refreshSoon(pause = PAUSE) {
    if (this.due) return;
    this.due = window.setTimeout(async () => {
      this.due = 0;
      await this._refresh();
    }, pause);
  }

  async _refresh() {
    if (document.hidden) return;
    let response;
    try {
      response = await fetch(this.url());
    } catch {
      return; // the connection badge tells of a server that is away; the next point asks again
    }
    if (!response.ok || response.redirected) return;
    const scrolled = this.place.querySelector(".table-frame")?.scrollLeft ?? 0;
    this.place.innerHTML = await response.text();
    this._sort();
    const frame = this.place.querySelector(".table-frame");
    if (frame) frame.scrollLeft = scrolled;
    this.redrawn();
  }

  _clicked(event) {
    const head = event.target.closest("th[data-column]");
    if (!head) return;
    const column = Number(head.dataset.column);
    const ascending = head.dataset.better === "min";
    const same = this.sorted?.column === column;
    this.sorted = { column, ascending: same ? !this.sorted.ascending : ascending };
    this._sort();
  }

  _sort() {
    if (!this.sorted) return;
    const { column, ascending } = this.sorted;
    const body = this.place.querySelector("tbody");
    const value = (row) => row.querySelector(`[data-column="${column}"]`)?.dataset.value ?? "";
    const rows = [...body.rows].sort((a, b) => order(value(a), value(b), ascending));
    body.replaceChildren(...rows);
    for (const head of this.place.querySelectorAll("th[data-column]")) {
      const mine = Number(head.dataset.column) === column;
      if (mine) head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  }
}

// What has no number comes last, whichever way the others are sorted.
function order(a, b, ascending) {
  const [left, right] = [Number(a), Number(b)];
  const [none, noOther] = [a === "" || Number.isNaN(left), b === "" || Number.isNaN(right)];
  if (none || noOther) {
    if (none && noOther) return a < b ? -1 : Number(a > b);
    return Number(none) - Number(noOther);
  }
  return ascending ? left - right : right - left;
}
