// Which objects the map shows, by a filter that is no query. Pure.

import { vocabularyOf } from "../queries/filter-words.js";
import { FilterError } from "./cql2.js";
import { compileFilter } from "./filter.js";

export class DisplayFilter {
  store;
  test;
  found;
  texts;

  /** @param {Record<string, any>} store read only */
  constructor(store) {
    Object.assign(this, { store, text: "" });
    this.#forget(null);
  }

  get active() {
    return this.test !== null;
  }

  /**
   * Show only objects for which a filter holds; all of them for an empty one.
   *
   * @throws {FilterError} if the filter is wrong; then the one before stays
   */
  set(text) {
    const written = text.trim();
    this.#forget(written ? compileFilter(written) : null);
    this.text = written;
  }

  /** Return whether an object is shown. What was found out is kept until its properties change. */
  passes(slot) {
    const text = this.store.objects.texts[slot];
    if (this.texts[slot] !== text) {
      this.texts[slot] = text;
      this.found[slot] = this.test(text);
    }
    return this.found[slot];
  }

  /** Count the objects that are shown, of the streams that are: `{shown, of}`. */
  count(streamShown) {
    const { size, alive, streams } = this.store.objects;
    const counts = { shown: 0, of: 0 };
    for (let slot = 0; slot < size; slot++) {
      if (!alive[slot] || !streamShown(streams[slot])) continue;
      counts.of++;
      if (this.passes(slot)) counts.shown++;
    }
    return counts;
  }

  #forget(test) {
    Object.assign(this, { test, texts: [], found: [] });
  }
}

/** Say what a filter would match of objects, given their properties as JSON, as the server answers `filter.check`. */
export function checked(where, texts) {
  try {
    const test = compileFilter(where);
    const { names } = vocabularyOf(texts);
    const unknown = test.names.filter((name) => !names.has(name)).map((name) => ({ name, nearest: null }));
    return { error: null, matches: texts.filter(test).length, of: texts.length, unknown, whole: true };
  } catch (error) {
    if (error instanceof FilterError) return { error: error.message, matches: 0, of: texts.length, unknown: [] };
    throw error;
  }
}
