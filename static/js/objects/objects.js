// The objects on the map as columns of numbers, which the canvas reads sixty times a second. Pure.

import { parsed } from "../format.js";
import { headingIndex, mercatorX, mercatorY, wrapLongitude } from "../geometry.js";
import { BEACON, kindIn } from "./object-kinds.js";
import { Trails } from "./trails.js";

export const NO_COLOUR = -1;

const LONGEST_NUMBER = 20; // characters

const FIRST_CAPACITY = 1024;
const COLUMNS = {
  lon: Float64Array,
  lat: Float64Array,
  alt: Float64Array,
  x: Float64Array,
  y: Float64Array,
  timeMs: Float64Array,
  course: Float32Array, // in degrees; NaN if it is not known
  speed: Float32Array, // in metres a second; NaN if it is not known
  altitude: Float32Array, // `alt`, or else the property of that name; NaN without either
  heading: Uint8Array,
  kind: Uint8Array, // in `KINDS`: its own, or else that of its stream
  ofStream: Uint8Array, // that of its stream
  colour: Int8Array,
  paired: Uint8Array, // whether it is in a pair of a join that is shown
  alive: Uint8Array,
};

/**
 * Return the course, or else the heading, that a JSON text of properties holds; NaN without either. The text is not parsed
 * as a whole, since most properties are never shown.
 */
export function courseOf(properties) {
  const course = numberOf(properties, '"course_deg":');
  return Number.isNaN(course) ? numberOf(properties, '"heading_deg":') : course;
}

/** Return the number behind a name, written as in JSON with its colon, in a JSON text of properties; NaN without one. */
export function numberOf(properties, written) {
  const at = properties.indexOf(written);
  if (at < 0) return NaN;
  const from = at + written.length;
  return Number.parseFloat(properties.slice(from, from + LONGEST_NUMBER));
}

/** Slots of objects; a slot is reused once its object has left every answer. */
export class Objects {
  speed;
  altitude;
  kind;
  ofStream;
  timeMs;
  lon;
  lat;
  alt;
  course;
  heading;
  x;
  y;
  alive;
  colour;
  paired;

  constructor() {
    this.capacity = 0;
    this.size = 0; // number of slots ever used, where loops over slots end
    this.live = 0;
    this.free = [];
    this.keys = [];
    this.streams = [];
    this.texts = [];
    this.trails = new Trails();
    this.chosen = null; // a function of a slot: by what else than speed and altitude a trail may be coloured, as a number
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

  /** Draw the objects of a stream as those of a kind, but for those that say what they are. */
  draw(stream, kind) {
    for (const slot of this.byStream.get(stream)?.values() ?? []) {
      this.ofStream[slot] = kind;
      this.kind[slot] = kindIn(this.texts[slot], kind);
    }
  }

  /** Update an object from a row; an older row changes nothing. Return whether the object moved. */
  update(slot, rows, row) {
    if (rows.timeMs[row] < this.timeMs[slot]) return false;
    const moved = this.lon[slot] !== rows.lon[row] || this.lat[slot] !== rows.lat[row];
    this.timeMs[slot] = rows.timeMs[row];
    this.alt[slot] = rows.alt[row];
    if (rows.properties[row] !== this.texts[slot]) {
      this.texts[slot] = rows.properties[row];
      this.kind[slot] = kindIn(rows.properties[row], this.ofStream[slot]);
      this.course[slot] = courseOf(rows.properties[row]);
      this.speed[slot] = numberOf(rows.properties[row], '"speed_mps":');
      this.heading[slot] = headingIndex(this.course[slot]);
    }
    this.altitude[slot] = Number.isFinite(rows.alt[row]) ? rows.alt[row] : numberOf(this.texts[slot], '"altitude_m":');
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
    this.trails.remove(slot);
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

  /** Return the properties of the objects of a stream, as JSON. */
  textsOf(stream) {
    return [...(this.byStream.get(stream)?.values() ?? [])].map((slot) => this.texts[slot]).filter(Boolean);
  }

  /** Whether an object calls for help, so that it is drawn above others. */
  isUrgent(slot) {
    return this.kind[slot] === BEACON;
  }

  properties(slot) {
    return parsed(this.texts[slot]);
  }

  #trace(slot) {
    const values = [this.speed[slot], this.altitude[slot], this.chosen ? this.chosen(slot) : NaN];
    this.trails.add(slot, this.x[slot], this.y[slot], this.timeMs[slot], values);
  }

  #clear(slot, stream, kind, key) {
    this.streams[slot] = stream;
    this.keys[slot] = key;
    this.texts[slot] = "";
    this.queries[slot] = [];
    this.timeMs[slot] = -Infinity;
    this.lon[slot] = this.lat[slot] = this.x[slot] = this.y[slot] = NaN;
    this.heading[slot] = 0;
    this.course[slot] = this.speed[slot] = this.altitude[slot] = this.alt[slot] = NaN;
    this.kind[slot] = this.ofStream[slot] = kind;
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
