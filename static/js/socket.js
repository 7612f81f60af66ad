// @ts-check
// One WebSocket that comes back by itself, and the badge that says how fresh the page is.

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15000;
/** The server sends a beat every 5 s; after three missed ones the line is dead even if nobody said so. */
const SILENCE = 16000;
const OFFLINE_AFTER = 20000;

/**
 * @typedef {"connecting" | "live" | "reconnecting" | "offline"} Status
 * @param {string} path begins with /ws/
 * @param {{onMessage: (message: any) => void, onStatus?: (status: Status, age: number | null) => void}} handlers
 *   `age` is seconds since the last message, null before the first; onStatus is called once a second
 * @returns {{send: (message: object) => boolean, close: () => void, lastMessage: () => number | null}}
 */
export function connect(path, { onMessage, onStatus }) {
  const line = new Line(path, onMessage, onStatus ?? (() => {}));
  line.open();
  return { send: (message) => line.send(message), close: () => line.close(), lastMessage: () => line.heard };
}

class Line {
  constructor(path, onMessage, onStatus) {
    this.path = path;
    this.onMessage = onMessage;
    this.onStatus = onStatus;
    this.attempts = 0;
    this.closed = false;
    /** @type {number | null} */ this.heard = null;
    /** @type {number | null} */ this.lost = null;
    /** @type {WebSocket | null} */ this.socket = null;
    this.retry = 0;
    this.tick = setInterval(() => this.check(), 1000);
    this.wake = () => this.hurry();
    document.addEventListener("visibilitychange", this.wake);
    addEventListener("online", this.wake);
    addEventListener("pageshow", this.wake);
  }

  open() {
    clearTimeout(this.retry);
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}${this.path}`);
    this.socket = socket;
    this.opened = Date.now();
    socket.onopen = () => this.greeted(socket);
    socket.onmessage = (event) => this.receive(socket, event);
    socket.onclose = () => this.gone(socket);
    this.report();
  }

  greeted(socket) {
    if (socket !== this.socket) return;
    this.heard = Date.now();
    this.lost = null;
    this.report();
  }

  receive(socket, event) {
    if (socket !== this.socket) return;
    this.heard = Date.now();
    this.lost = null;
    this.attempts = 0; // not before: a server that accepts and drops at once is not asked ever faster
    const message = JSON.parse(event.data);
    this.report();
    if (message.type !== "beat") this.onMessage(message);
  }

  gone(socket) {
    if (socket !== this.socket || this.closed) return;
    this.socket = null;
    this.lost ??= Date.now();
    this.attempts += 1;
    const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** (this.attempts - 1));
    // Jitter, so that a restarted server is not met by every open page in the same moment.
    this.retry = setTimeout(() => this.open(), delay * (0.5 + Math.random()));
    this.report();
  }

  /** A page that is looked at again does not wait for the back-off of a hidden one. */
  hurry() {
    if (this.closed || document.hidden) return;
    this.check();
    if (this.socket === null) this.open();
  }

  check() {
    const since = Math.max(this.heard ?? 0, this.opened ?? 0);
    if (this.socket && Date.now() - since > SILENCE) {
      const dead = this.socket;
      dead.close();
      this.gone(dead);
    }
    this.report();
  }

  status() {
    if (this.socket && this.lost === null && this.heard !== null) return "live";
    if (this.lost !== null && Date.now() - this.lost > OFFLINE_AFTER) return "offline";
    return this.heard === null && this.attempts === 0 ? "connecting" : "reconnecting";
  }

  report() {
    this.onStatus(/** @type {Status} */ (this.status()), this.heard === null ? null : (Date.now() - this.heard) / 1000);
  }

  send(message) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  close() {
    this.closed = true;
    clearInterval(this.tick);
    clearTimeout(this.retry);
    document.removeEventListener("visibilitychange", this.wake);
    removeEventListener("online", this.wake);
    removeEventListener("pageshow", this.wake);
    this.socket?.close();
  }
}

const WORDS = { connecting: "Connecting", live: "Live", reconnecting: "Reconnecting", offline: "Offline" };

/** An onStatus handler that keeps the badge (templates/includes/_connection.html) in words, colour and age. */
export function badge(element) {
  const word = element.querySelector("[data-word]");
  const age = element.querySelector("[data-age]");
  return (status, seconds) => {
    element.hidden = false;
    if (element.dataset.status !== status) {
      element.dataset.status = status;
      word.textContent = WORDS[status];
    }
    const text = seconds === null || (status === "live" && seconds < 10) ? "" : `${Math.floor(seconds)} s ago`;
    if (age.textContent !== text) age.textContent = text;
    element.title = seconds === null ? "No message yet" : `Last message ${Math.floor(seconds)} s ago`;
  };
}
