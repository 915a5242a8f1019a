// Collects items that come one by one, and passes them on together. Pure except for the timer, which is passed in.

const WAIT_MS = 20;
export const MOST = 1000; // items of one message: the server's limit

export class Gathered {
  passOn;
  later;
  waiting;

  /** @param {(...values: any[]) => any} passOn called with a list of at most `MOST` items, `WAIT_MS` after the first of them was added */
  constructor(passOn, { later = (run, ms) => setTimeout(run, ms) } = {}) {
    Object.assign(this, { passOn, later, waiting: new Set(), due: false });
  }

  add(item) {
    this.waiting.add(item);
    if (this.due) return;
    this.due = true;
    this.later(() => this.#flush(), WAIT_MS);
  }

  clear() {
    this.waiting.clear();
  }

  #flush() {
    this.due = false;
    const items = [...this.waiting];
    this.waiting.clear();
    for (let i = 0; i < items.length; i += MOST) this.passOn(items.slice(i, i + MOST));
  }
}
