// The order of texts by collation, kept from one sort to the next: comparing texts is what makes a sort slow. Pure.

import { LOCALE } from "../i18n.js";

const SLACK = 1000; // texts that no row has any more, and that may stay all the same

/** Ranks of texts. Texts that collate as equal, such as "a" and "A" in some languages, have ranks of their own, one after the other. */
export class Ranks {
  /** @param {Intl.Collator} collator */
  constructor(collator = new Intl.Collator(LOCALE, { numeric: true })) {
    this.compare = collator.compare;
    this.sorted = [];
    this.ranks = new Map();
  }

  /** Return the rank of a text, which `learn` must have been given. */
  of(text) {
    return this.ranks.get(text);
  }

  /** Learn the texts of `n` rows: compare only those that are new. */
  learn(n, textOf) {
    const fresh = new Set();
    for (let i = 0; i < n; i++) {
      const text = textOf(i);
      if (text !== null && !this.ranks.has(text)) fresh.add(text);
    }
    if (fresh.size === 0) return;
    if (this.sorted.length + fresh.size > 2 * n + SLACK) this.#forget(n, textOf);
    // The order of code units is nearly that of collation, and a sort of what is nearly in order compares few texts.
    const added = [...fresh].sort().sort(this.compare);
    this.sorted = this.sorted.length > 0 ? merged(this.sorted, added, this.compare) : added;
    this.sorted.forEach((text, rank) => this.ranks.set(text, rank));
  }

  /** Forget the texts that none of `n` rows has. */
  #forget(n, textOf) {
    const used = new Set();
    for (let i = 0; i < n; i++) used.add(textOf(i));
    this.sorted = this.sorted.filter((text) => used.has(text));
    this.ranks.clear();
  }
}

function merged(a, b, compare) {
  const all = [];
  let i = 0;
  for (const text of b) {
    while (i < a.length && compare(a[i], text) <= 0) all.push(a[i++]);
    all.push(text);
  }
  while (i < a.length) all.push(a[i++]);
  return all;
}
