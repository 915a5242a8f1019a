// The pairs that joins over event time told lately, as lines on the map. Pure.

import { mercatorX, mercatorY } from "../geometry.js";

export const KEPT_MS = 10_000;
export const PAIRS_KEPT = 4096;
export const STEPS = 10; // in which a line fades

/** The newest pairs, one line for each: a pair that is told again has its line where it was told last. */
export class ToldPairs {
  constructor() {
    this.lines = new Map(); // name of a pair -> {query, heardMs, x1, y1, x2, y2}, the pair that was told last at the end
    this.missed = new Map(); // query -> how many entries and exits were not sent, {before, now, uncounted}: before this connection and on it
    this.heardMs = -Infinity; // when a pair was told last
    this.counts = new Map(); // query -> how many pairs it told while the page showed it
  }

  /** Add a pair that was told at `nowMs`: `{query, key, partnerKey}`, and the places of the two, `[lon, lat]`. */
  add({ query, key, partnerKey, place, partnerPlace }, nowMs) {
    const name = JSON.stringify([query, key, partnerKey]);
    this.lines.delete(name); // a Map puts what is inserted again last
    this.lines.set(name, { query, heardMs: nowMs, ...lineOf(place, partnerPlace) });
    if (this.lines.size > PAIRS_KEPT) this.lines.delete(this.lines.keys().next().value);
    this.heardMs = nowMs;
    this.counts.set(query, (this.counts.get(query) ?? 0) + 1);
  }

  /** Whether a pair is still to be seen. */
  fresh(nowMs) {
    return nowMs - this.heardMs < KEPT_MS;
  }

  /**
   * Return the lines to be seen in groups that are drawn alike, the oldest first: `[{query, step, lines}]`. `step` is 0 for the
   * newest and below `STEPS`; older lines are forgotten.
   */
  groups(nowMs) {
    const groups = new Map();
    for (const [name, line] of this.lines) {
      const step = Math.max(0, Math.floor(((nowMs - line.heardMs) / KEPT_MS) * STEPS));
      if (step >= STEPS) {
        this.lines.delete(name);
        continue;
      }
      const alike = line.query * STEPS + step;
      if (!groups.has(alike)) groups.set(alike, { query: line.query, step, lines: [] });
      groups.get(alike).lines.push(line);
    }
    return [...groups.values()].sort((a, b) => b.step - a.step);
  }
}

/** Return the line between two places `[lon, lat]` in Web Mercator, the short way round the world: `x2` may be beyond its edge. */
export function lineOf([lon, lat], [partnerLon, partnerLat]) {
  const x1 = mercatorX(lon);
  const x2 = mercatorX(partnerLon);
  return { x1, y1: mercatorY(lat), x2: x2 - Math.round(x2 - x1), y2: mercatorY(partnerLat) };
}
