// The stored elements of one stream that were read ahead, and which objects are shown at a time. Pure.

import { firstAfter, gather } from "./pages.js";

export const MOST_ROWS = 200_000; // of pages that are kept; of what comes, too, only as many are read ahead

export class ElementBuffer {
  #pages = []; // {rows, first, untilMs}: the changes of each page, from its row `first` on
  #beginning = []; // refs {rows, row} of the objects that are shown at `fromMs`
  #alive = new Map(); // key -> ref; the object that was heard last comes last
  #at = { page: 0, row: 0 }; // the first change that is not applied

  /** @param {Record<string, any>} page the first page, with the scene at its beginning, as `readPage` returns it */
  constructor(page) {
    this.lifeMs = page.life_us / 1000;
    this.fromMs = this.untilMs = page.fromMs;
    this.#beginning = Array.from({ length: page.scene }, (_, row) => ({ rows: page.rows, row }));
    this.add(page);
    this.seek(this.fromMs);
  }

  /** Add the page that follows. */
  add(/** @type {Record<string, any>} */ { rows, scene, untilMs }) {
    this.#pages.push({ rows, first: scene, untilMs });
    this.untilMs = untilMs;
  }

  /** The number of rows that are kept. */
  get length() {
    return this.#pages.reduce((sum, page) => sum + page.rows.length, 0);
  }

  /** Whether the scene at a time is known. */
  knows(ms) {
    return ms >= this.fromMs && ms <= this.untilMs;
  }

  /** Go to a known time; return the rows of all objects that are shown then. */
  seek(ms) {
    this.#alive = new Map(this.#beginning.map((ref) => [keyOf(ref), ref]));
    this.#at = { page: 0, row: this.#pages[0].first };
    this.#apply(ms, () => {});
    this.#expire(ms, () => {});
    return this.#rows([...this.#alive.values()]);
  }

  /** Go on to a known time; return the last row of each object that changed, with the sign -1 if it is not shown any more. */
  advance(ms) {
    const changed = new Map();
    this.#apply(ms, (ref) => changed.set(keyOf(ref), ref));
    this.#expire(ms, (ref) => changed.set(keyOf(ref), ref));
    return this.#rows([...changed.values()]);
  }

  /** Forget the oldest pages before a time if there are too many rows. */
  forget(beforeMs, mostRows = MOST_ROWS) {
    while (this.#at.page > 0 && this.length > mostRows && this.#pages[0].untilMs < beforeMs) {
      const [{ rows: gone, first, untilMs }] = this.#pages.splice(0, 1);
      const known = new Map(this.#beginning.map((ref) => [keyOf(ref), ref]));
      for (let row = first; row < gone.length; row++) put(known, { rows: gone, row });
      const kept = [...known.values()].filter(({ rows: { atMs }, row }) => untilMs - atMs[row] <= this.lifeMs);
      const copied = gather(
        kept,
        kept.map(() => 1),
      ); // so that the rest of the page can be freed
      this.#beginning = kept.map((_, row) => ({ rows: copied, row }));
      this.fromMs = untilMs;
      this.#at.page--;
    }
  }

  #apply(ms, told) {
    for (
      ;
      this.#at.page < this.#pages.length;
      this.#at = { page: this.#at.page + 1, row: this.#pages[this.#at.page + 1]?.first ?? 0 }
    ) {
      const { rows } = this.#pages[this.#at.page];
      const end = firstAfter(rows.atMs, ms, this.#at.row);
      for (let { row } = this.#at; row < end; row++) {
        const ref = { rows, row };
        put(this.#alive, ref);
        told(ref);
      }
      this.#at.row = end;
      if (end < rows.length || this.#at.page + 1 === this.#pages.length) return;
    }
  }

  #expire(ms, told) {
    for (const [key, ref] of this.#alive) {
      if (ms - ref.rows.atMs[ref.row] <= this.lifeMs) return;
      this.#alive.delete(key);
      told(ref);
    }
  }

  #rows(refs) {
    return gather(
      refs,
      refs.map((ref) => (this.#alive.has(keyOf(ref)) ? 1 : -1)),
    );
  }
}

function keyOf({ rows, row }) {
  return rows.keys[row];
}

/** Put the object of a row last, or remove it if the row says that it left. */
function put(alive, ref) {
  const key = keyOf(ref);
  alive.delete(key); // a Map puts what is inserted again last
  if (ref.rows.sign[ref.row] >= 0) alive.set(key, ref);
}
