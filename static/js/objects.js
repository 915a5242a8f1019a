// The objects on the map as columns of numbers, which the canvas reads sixty times a second. Pure.

import { parsed } from "./format.js";
import { headingIndex, mercatorX, mercatorY, wrapLongitude } from "./geometry.js";

export const TRAIL_POINTS = 128;
export const KINDS = ["ship", "aircraft", "bus", "other"];
export const NO_COLOUR = -1;

const FIRST_CAPACITY = 1024;
const COLUMNS = {
  lon: Float64Array,
  lat: Float64Array,
  alt: Float64Array,
  x: Float64Array,
  y: Float64Array,
  timeMs: Float64Array,
  heading: Uint8Array,
  kind: Uint8Array,
  colour: Int8Array,
  paired: Uint8Array, // whether it is in a pair of a join that is shown
  alive: Uint8Array,
};

/** Return the index in `KINDS` of a stream's icon; an unknown icon is "other". */
export function kindOf(icon) {
  const index = KINDS.indexOf({ plane: "aircraft", vessel: "ship" }[icon] ?? icon);
  return index < 0 ? KINDS.length - 1 : index;
}

/**
 * Return the course, or else the heading, that a JSON text of properties holds; NaN without either. The text is not parsed
 * as a whole, since most properties are never shown.
 */
export function courseOf(properties) {
  const at = properties.indexOf('"course_deg":');
  const course = at < 0 ? NaN : Number.parseFloat(properties.slice(at + 13, at + 33));
  if (!Number.isNaN(course)) return course;
  const heading = properties.indexOf('"heading_deg":');
  return heading < 0 ? NaN : Number.parseFloat(properties.slice(heading + 14, heading + 34));
}

/** Slots of objects; a slot is reused once its object has left every answer. */
export class Objects {
  constructor() {
    this.capacity = 0;
    this.size = 0; // number of slots ever used, where loops over slots end
    this.live = 0;
    this.free = [];
    this.keys = [];
    this.streams = [];
    this.texts = [];
    this.trails = [];
    this.queries = []; // for each slot: the numbers of the queries whose answer has the object
    this.byStream = new Map();
    this.#grow(FIRST_CAPACITY);
  }

  slot(stream, key) {
    return this.byStream.get(stream)?.get(key);
  }

  /** Return the slot of an object; an unknown object gets a new slot. */
  ensure(stream, kind, key) {
    let slots = this.byStream.get(stream);
    if (!slots) this.byStream.set(stream, (slots = new Map()));
    let slot = slots.get(key);
    if (slot === undefined) {
      slot = this.free.pop() ?? this.size++;
      if (slot >= this.capacity) this.#grow(this.capacity * 2);
      slots.set(key, slot);
      this.#clear(slot, stream, kind, key);
      this.live++;
    }
    return slot;
  }

  /** Draw the objects of a stream as those of a kind. */
  draw(stream, kind) {
    for (const slot of this.byStream.get(stream)?.values() ?? []) this.kind[slot] = kind;
  }

  /** Update an object from a row; an older row changes nothing. Return whether the object moved. */
  update(slot, rows, row) {
    if (rows.timeMs[row] < this.timeMs[slot]) return false;
    const moved = this.lon[slot] !== rows.lon[row] || this.lat[slot] !== rows.lat[row];
    this.timeMs[slot] = rows.timeMs[row];
    this.alt[slot] = rows.alt[row];
    if (rows.properties[row] !== this.texts[slot]) {
      this.texts[slot] = rows.properties[row];
      this.heading[slot] = headingIndex(courseOf(rows.properties[row]));
    }
    if (moved) {
      this.lon[slot] = rows.lon[row];
      this.lat[slot] = rows.lat[row];
      this.x[slot] = mercatorX(rows.lon[row]);
      this.y[slot] = mercatorY(rows.lat[row]);
      this.#trace(slot);
    }
    return moved;
  }

  /** Free the slot of an object. */
  remove(slot) {
    this.byStream.get(this.streams[slot]).delete(this.keys[slot]);
    this.alive[slot] = 0;
    this.trails[slot] = null;
    this.texts[slot] = "";
    this.free.push(slot);
    this.live--;
  }

  /** Count the objects of each stream in a plan's box; the stream with the most comes first. */
  countIn({ lo, hi }) {
    const counts = new Map();
    for (let slot = 0; slot < this.size; slot++) {
      const eastwardsDeg = wrapLongitude(this.lon[slot] - lo[0] - 180) + 180; // from the box's western side, in [0, 360)
      const inside = eastwardsDeg <= hi[0] - lo[0] && this.lat[slot] >= lo[1] && this.lat[slot] <= hi[1];
      if (!this.alive[slot] || !inside) continue;
      counts.set(this.streams[slot], (counts.get(this.streams[slot]) ?? 0) + 1);
    }
    return new Map([...counts].sort(([, a], [, b]) => b - a));
  }

  /** Return the stream of the object that is nearest to a place on the map (in Web Mercator); undefined without objects. */
  streamNear([lon, lat]) {
    const [x, y] = [mercatorX(lon), mercatorY(lat)];
    let [nearest, least] = [undefined, Infinity];
    for (let slot = 0; slot < this.size; slot++) {
      const across = Math.abs(this.x[slot] - x) % 1;
      const far = Math.hypot(Math.min(across, 1 - across), this.y[slot] - y);
      if (this.alive[slot] && far < least) [nearest, least] = [this.streams[slot], far];
    }
    return nearest;
  }

  properties(slot) {
    return parsed(this.texts[slot]);
  }

  /** Unit Mercator positions of the trail, oldest first, as [x, y, x, y, ...]. */
  trail(slot) {
    const trail = this.trails[slot];
    if (!trail) return [];
    const first = Math.max(0, trail.count - TRAIL_POINTS);
    const out = [];
    for (let i = first; i < trail.count; i++) {
      const at = 2 * (i % TRAIL_POINTS);
      out.push(trail.points[at], trail.points[at + 1]);
    }
    return out;
  }

  #trace(slot) {
    const trail = (this.trails[slot] ??= { points: new Float64Array(2 * TRAIL_POINTS), count: 0 });
    const at = 2 * (trail.count++ % TRAIL_POINTS);
    trail.points[at] = this.x[slot];
    trail.points[at + 1] = this.y[slot];
  }

  #clear(slot, stream, kind, key) {
    this.streams[slot] = stream;
    this.keys[slot] = key;
    this.texts[slot] = "";
    this.trails[slot] = null;
    this.queries[slot] = [];
    this.timeMs[slot] = -Infinity;
    this.lon[slot] = this.lat[slot] = this.x[slot] = this.y[slot] = NaN;
    this.heading[slot] = 0;
    this.kind[slot] = kind;
    this.colour[slot] = NO_COLOUR;
    this.paired[slot] = 0;
    this.alive[slot] = 1;
  }

  #grow(capacity) {
    for (const [name, Type] of Object.entries(COLUMNS)) {
      const column = new Type(capacity);
      if (this[name]) column.set(this[name]);
      this[name] = column;
    }
    this.capacity = capacity;
  }
}
