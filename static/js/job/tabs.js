// @ts-check
// Tabs whose choice is the address's fragment, so that the back button and a shared link open the same one.

export class Tabs {
  /** @param {HTMLElement} list role=tablist @param {(name: string) => void} opened */
  constructor(list, opened) {
    this.buttons = /** @type {HTMLElement[]} */ ([...list.querySelectorAll('[role="tab"]')]);
    this.opened = opened;
    for (const button of this.buttons) button.addEventListener("click", () => this._go(button));
    list.addEventListener("keydown", (event) => this._key(event));
    addEventListener("hashchange", () => this._fromAddress());
    this._fromAddress();
  }

  _fromAddress() {
    const name = location.hash.slice(1);
    this._open(this.buttons.find((button) => button.dataset.tab === name) ?? this.buttons[0]);
  }

  _go(button) {
    const url = button === this.buttons[0] ? location.pathname + location.search : `#${button.dataset.tab}`;
    history.pushState(null, "", url);
    this._open(button);
  }

  _open(chosen) {
    for (const button of this.buttons) {
      const selected = button === chosen;
      button.setAttribute("aria-selected", String(selected));
      button.tabIndex = selected ? 0 : -1;
      document.getElementById(button.getAttribute("aria-controls")).hidden = !selected;
    }
    this.opened(chosen.dataset.tab);
  }

  _key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = this.buttons.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = this.buttons[(at + step + this.buttons.length) % this.buttons.length];
    next.focus();
    this._go(next);
  }
}
