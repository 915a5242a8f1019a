// Which objects the table lists: those in view, in the answer of a query, of a stream, or the watched ones. Pure.

import { kindOf } from "../kinds/registry.js";

export const VIEW = "view";
export const WATCHED = "watched";

/** Read a source, "view", "watched", "query:7" or "stream:ships": `{kind, query, stream}`; null if it is none. */
export function readSource(text) {
  if (text === VIEW || text === WATCHED) return { kind: text };
  const [, kind, name] = /^(query|stream):(.+)$/s.exec(text ?? "") ?? [];
  if (kind === "stream") return { kind, stream: name };
  return kind === "query" && /^\d+$/.test(name) ? { kind, query: Number(name) } : null;
}

/** Return whether a query's answer consists of objects; that of an aggregate has figures, and some tell pairs and keep no answer. */
export function hasObjects({ plan }) {
  const { told, lasting, asked } = kindOf(plan);
  return Boolean(plan) && !plan.aggregate && !told && !lasting && !asked && plan.emit !== "all";
}

/** Collects the slots of a source, in the order of their numbers. */
export class Members {
  store;
  bounds;
  shown;
  watch;

  /** @param {Record<string, any>} parts `store`; `bounds()`, the map's rectangle; `shown(stream)`; `watch`, a WatchList */
  constructor(parts) {
    Object.assign(this, parts);
    this.slots = new Int32Array(0);
  }

  /** Write the slots of a source to `slots`; return how many there are. */
  collect(source) {
    const { objects } = this.store;
    if (this.slots.length < objects.capacity) this.slots = new Int32Array(objects.capacity);
    if (source.kind === VIEW) return this.#inView();
    const found =
      source.kind === "query"
        ? (this.store.answers.get(source.query)?.slots.keys() ?? [])
        : source.kind === "stream"
          ? (objects.byStream.get(source.stream)?.values() ?? [])
          : this.#watched();
    let n = 0;
    for (const slot of found) this.slots[n++] = slot;
    this.slots.subarray(0, n).sort();
    return n;
  }

  #inView() {
    const { objects, streams } = this.store;
    const { west, south, east, north } = this.bounds();
    const hidden = new Set([...streams.keys()].filter((name) => !this.shown(name)));
    const width = east - west;
    let n = 0;
    for (let slot = 0; slot < objects.size; slot++) {
      if (!objects.alive[slot]) continue;
      const lat = objects.lat[slot];
      if (!(lat >= south && lat <= north)) continue;
      const eastwards = (objects.lon[slot] - west) % 360; // from the western edge; the map may be some turns away
      if ((eastwards < 0 ? eastwards + 360 : eastwards) > width) continue;
      if (hidden.size > 0 && hidden.has(objects.streams[slot])) continue;
      this.slots[n++] = slot;
    }
    return n;
  }

  *#watched() {
    for (const { stream, key } of this.watch.all()) {
      const slot = this.store.objects.slot(stream, key);
      if (slot !== undefined) yield slot;
    }
  }
}
