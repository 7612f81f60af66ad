// @ts-check
// What all charts of a page share: the x axis, the zoom, smoothing, and where the pointer is.

/** Emits `change` (axis, smoothing, hidden lines), `log`, `zoom`, `highlight` and `hover`; charts listen. */
export class View extends EventTarget {
  constructor({ axis = "step", smooth = 0, log = [] } = {}) {
    super();
    this.axis = axis;
    this.smooth = smooth;
    this.log = new Set(log);
    /** @type {[number, number] | null} */
    this.range = null;
    /** @type {{x: number, chart: object} | null} */
    this.pointer = null;
    this.hidden = new Set();
    this.highlight = null;
  }

  setAxis(axis) {
    if (axis === this.axis) return;
    this.axis = axis;
    this.range = null;
    this._tell("change");
    this._tell("zoom");
  }

  setSmooth(weight) {
    this.smooth = weight;
    this._tell("change");
  }

  toggleLog(key) {
    if (!this.log.delete(key)) this.log.add(key);
    this._tell("change");
    this._tell("log");
  }

  /** @param {[number, number] | null} range in units of the axis; null shows all */
  setRange(range) {
    this.range = range;
    this._tell("zoom");
  }

  setPointer(pointer) {
    this.pointer = pointer;
    this._tell("hover");
  }

  toggle(key) {
    if (!this.hidden.delete(key)) this.hidden.add(key);
    this._tell("change");
  }

  /** Shows `key` alone among `keys`, or all of them when it was alone already. */
  isolate(key, keys) {
    const alone = keys.every((other) => this.hidden.has(other) === (other !== key));
    for (const other of keys) {
      if (alone || other === key) this.hidden.delete(other);
      else this.hidden.add(other);
    }
    this._tell("change");
  }

  setHighlight(key) {
    if (this.highlight === key) return;
    this.highlight = key;
    this._tell("highlight");
  }

  _tell(type) {
    this.dispatchEvent(new Event(type));
  }
}
