// Tells when a watched object enters or leaves the answer of a shown query, or falls silent. Pure.

import { age, parsed, reason, title } from "../format.js";
import { filled, gettext } from "../i18n.js";

export class WatchAlarms {
  store;
  watch;
  raise;

  /** @param {Record<string, any>} parts `store`; `watch`, a WatchList; `raise(text, rising)`, called with what happened, and whether something came */
  constructor(parts) {
    Object.assign(this, parts);
    this.seen = this.store.eventsSeen; // number of the newest event that was looked at
    this.silent = new Set(); // watched objects that were told to be silent
    this.heard = new Set(); // watched objects that the page has known
  }

  /** Look at the events that came since the last call. */
  follow() {
    const { events, eventsSeen, queries, past } = this.store;
    if (past || eventsSeen === this.seen) return;
    const fresh = events.slice(-Math.min(events.length, eventsSeen - this.seen));
    this.seen = eventsSeen;
    if (!this.watch.settings.crossings || this.watch.size === 0) return;
    for (const { stream, key, sign, query, queryName, text, reason: why } of fresh) {
      if (!this.watch.has(stream, key) || !queries.get(query)?.shown) continue;
      const words =
        sign > 0
          ? gettext("%(object)s entered “%(query)s”: %(why)s.")
          : gettext("%(object)s left “%(query)s”: %(why)s.");
      this.raise(
        filled(words, { object: title(key, parsed(text)), query: queryName, why: reason(why, sign) }),
        sign > 0,
      );
    }
  }

  /** Look at how long ago the watched objects were heard of. Without a live connection nothing is heard, and nothing is told. */
  look(nowMs) {
    const { silence, silentMin } = this.watch.settings;
    if (!silence || this.store.past || !["live", "slow"].includes(this.store.connection(nowMs))) return;
    for (const object of this.watch.all()) this.#listen(object, 60_000 * silentMin, nowMs);
  }

  #listen(object, limitMs, nowMs) {
    const { stream, key } = object;
    const name = `${stream}\n${key}`;
    const slot = this.store.objects.slot(stream, key);
    const ageMs = slot === undefined ? NaN : this.store.ageMs(slot, nowMs);
    if (slot !== undefined) this.heard.add(name);
    const gone = slot === undefined && this.heard.has(name); // its stream's time to live is shorter than the limit
    if (!(ageMs > limitMs) && !gone) {
      if (slot !== undefined) this.silent.delete(name);
      return;
    }
    if (this.silent.has(name)) return;
    this.silent.add(name);
    const words = gone
      ? gettext("%(object)s is not heard of any more.")
      : gettext("%(object)s has not been heard of for %(duration)s.");
    this.raise(filled(words, { object: object.title, duration: age(ageMs) }), false);
  }
}
