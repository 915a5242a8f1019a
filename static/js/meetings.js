// Pairs of reports that joins over event time have told lately: lines on the map that fade. Pure: no DOM, no clock.

export const FADE_MS = 10_000;
const MOST = 5_000; // of the newest
const SHADES = 8;

export class Meetings {
  #told = []; // oldest first
  pinned = null;

  /** Add a pair `{query, colour, from, to}`, its places as `[lon, lat]`, told at a time. */
  add(meeting, nowMs) {
    this.#told.push({ ...meeting, heardMs: nowMs });
    if (this.#told.length > 2 * MOST) this.#told = this.#told.slice(-MOST);
  }

  /** Forget the pairs of a query. */
  drop(query) {
    this.#told = this.#told.filter((one) => one.query !== query);
    if (this.pinned?.query === query) this.pinned = null;
  }

  /** Return the pairs to draw, in groups `{colour, alpha, pairs}` of one shade: the newest ones are the strongest. */
  shown(nowMs) {
    const first = this.#told.findIndex(({ heardMs }) => nowMs - heardMs < FADE_MS);
    this.#told = first < 0 ? [] : this.#told.slice(Math.max(first, this.#told.length - MOST));
    const groups = new Map();
    for (const pair of this.#told) {
      const shade = Math.ceil(SHADES * (1 - Math.max(0, nowMs - pair.heardMs) / FADE_MS));
      const id = `${pair.colour} ${shade}`;
      if (!groups.has(id)) groups.set(id, { colour: pair.colour, alpha: shade / SHADES, pairs: [] });
      groups.get(id).pairs.push(pair);
    }
    return [...groups.values()];
  }
}
