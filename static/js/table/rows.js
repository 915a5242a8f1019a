// The rows of the table: which objects, in which order. Pure.

import { Columns, FIXED_NAMES, KEY, NAME, STREAM } from "./columns.js";
import { readCondition, readSearch } from "./conditions.js";
import { Sorter } from "./order.js";
import { Ranks } from "./ranks.js";

const MOST_SORTS = 2; // rows that are equal in a column are in the order of the column that was sorted before
const ALWAYS_SEARCHED = [NAME, KEY, STREAM];

export class Rows {
  store;
  members;
  collator;

  /** @param {Record<string, any>} parts `store`; `members`, a Members; `collator`, if it is not that of the browser's language */
  constructor({ store, members, collator }) {
    Object.assign(this, { store, members, collator });
    this.columns = new Columns(store);
    this.sorter = new Sorter();
    this.ranks = new Map(); // name of a column -> Ranks
    this.sorts = [{ name: NAME, descending: false }]; // the first one decides
    this.search = "";
    this.conditions = new Map(); // name of a column -> what is written
    this.shown = [];
    this.slots = new Int32Array(0);
    this.n = 0; // rows
    this.of = 0; // objects of the source
    /** @type {Int32Array | null} */
    this.at = null; // the row of each slot; null until it is asked for
  }

  /** Show these columns. */
  show(names) {
    this.shown = names;
    this.columns.use([...names, ...this.sorts.map(({ name }) => name), ...this.conditions.keys()]);
  }

  /** Sort by a column; descending, if it was ascending, and the other way round. */
  sortBy(name, descending = this.sorts[0].name === name && !this.sorts[0].descending) {
    this.sorts = [{ name, descending }, ...this.sorts.filter((sort) => sort.name !== name)].slice(0, MOST_SORTS);
    this.show(this.shown);
  }

  /** Write a condition for a column; an empty one removes it. Return what is wrong with it, or "". */
  setCondition(name, written) {
    if (written.trim()) this.conditions.set(name, written);
    else this.conditions.delete(name);
    this.show(this.shown);
    return readCondition(name, written)?.error ?? "";
  }

  /** Collect, filter and sort the rows of a source anew. A condition that has an error filters nothing. */
  refresh(source, nowMs) {
    const { columns } = this;
    const members = this.members.collect(source);
    const slots = this.members.slots;
    columns.refresh(slots, members, nowMs);
    if (this.slots.length < members) this.slots = new Int32Array(slots.length);
    const tests = this.#tests();
    let n = 0;
    for (let i = 0; i < members; i++) {
      const slot = slots[i];
      let passes = true;
      for (let test = 0; passes && test < tests.length; test++) passes = tests[test](columns, slot);
      if (passes) this.slots[n++] = slot;
    }
    Object.assign(this, { n, of: members, at: null });
    for (const sort of [...this.sorts].reverse()) this.#sort(sort); // a stable sort by the first column keeps the order of the second
  }

  /** Return the row of an object, given its slot; -1 if it has none. */
  rowOf(slot) {
    if (slot === undefined) return -1;
    if (!this.at) {
      this.at = new Int32Array(this.store.objects.capacity).fill(-1);
      for (let row = 0; row < this.n; row++) this.at[this.slots[row]] = row;
    }
    return this.at[slot] ?? -1;
  }

  /** Return the columns from which a user may choose: those of every object, and the properties that occurred. */
  choices() {
    return [...FIXED_NAMES, ...[...this.columns.known].sort()];
  }

  #tests() {
    const search = readSearch(this.search, [...new Set([...ALWAYS_SEARCHED, ...this.shown])]);
    const conditions = [...this.conditions].map(([name, written]) => readCondition(name, written)?.passes);
    return [...conditions, search].filter(Boolean);
  }

  #sort({ name, descending }) {
    const { columns, slots, n } = this;
    const textOf = (slot) => columns.text(name, slot);
    if (!this.ranks.has(name)) this.ranks.set(name, new Ranks(this.collator));
    const ranks = this.ranks.get(name);
    ranks.learn(n, (row) => textOf(slots[row]));
    const rankOf = (slot) => {
      const text = textOf(slot);
      return text === null ? -1 : ranks.of(text);
    };
    this.sorter.sort(slots, n, { numberOf: (slot) => columns.number(name, slot), rankOf, descending });
  }
}
