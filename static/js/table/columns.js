// The columns of the table: what they are called, and their values by the slots of the store's objects. Pure.

import { age, altitude, label, parsed, place, title, value } from "../format.js";
import { gettext } from "../i18n.js";
import { unitsOf } from "../quantities.js";

// Columns that every object has. The others are named like the properties that they show.
export const KEY = "@key";
export const NAME = "@name";
export const STREAM = "@stream";
export const HEARD = "@heard";
export const PLACE = "@place";
export const LONGITUDE = "@longitude";
export const LATITUDE = "@latitude";
export const ALTITUDE = "@altitude";

const FIXED = {
  [NAME]: { label: gettext("Name"), width: 190 },
  [KEY]: { label: gettext("Key"), width: 130 },
  [STREAM]: { label: gettext("Stream"), width: 150 },
  [HEARD]: { label: gettext("Last heard"), width: 104, unit: gettext("s ago") },
  [PLACE]: { label: gettext("Place"), width: 206, unit: "" },
  [LONGITUDE]: { label: gettext("Longitude"), width: 108, unit: "\u00b0" },
  [LATITUDE]: { label: gettext("Latitude"), width: 104, unit: "\u00b0" },
  [ALTITUDE]: { label: gettext("Altitude"), width: 100 },
};
export const FIXED_NAMES = Object.keys(FIXED);
export const FIRST_COLUMNS = [NAME, KEY, STREAM, HEARD, PLACE];

const FIXED_LABELS = new Set(Object.values(FIXED).map((about) => about.label));

const PROPERTY_PX = 132;
const MOST_NAMES = 500;
// Units in which properties are shown whatever units are chosen, by the endings of their names.
const UNITS = [
  ["_deg_per_min", "\u00b0/min"],
  ["_deg", "\u00b0"],
  ["_us", "\u00b5s"],
  ["_s", "s"],
  ["_pct", "%"],
];

/** Return how a column is shown: `label`, `width` in pixels, and `unit`, that of the numbers in its filter. */
export function aboutColumn(name) {
  const shown = unitsOf(name)?.shown;
  if (Object.hasOwn(FIXED, name)) return { unit: shown ?? "", ...FIXED[name] };
  const unit = shown ?? UNITS.find(([ending]) => name.endsWith(ending))?.[1] ?? "";
  const words = label(name);
  return { label: words && !FIXED_LABELS.has(words) ? words : name, width: PROPERTY_PX, unit };
}

/** Return the name of a column in an exported file. */
export function fieldName(name) {
  return name.startsWith("@") ? ({ [HEARD]: "last_heard", [PLACE]: "place" }[name] ?? name.slice(1)) : name;
}

/**
 * Values by slot. Properties come as JSON texts, which are parsed when an object's text has changed; of them, only the columns in
 * use are kept.
 */
export class Columns {
  /** @param {Record<string, any>} store read only */
  constructor(store) {
    this.store = store;
    this.capacity = 0;
    this.texts = []; // for each slot: the JSON text that was parsed last
    this.keys = []; // and the key of its object
    this.names = []; // what the object is called
    this.used = new Map(); // name of a property -> {numbers, texts}
    this.known = new Set(); // names of all properties that occurred
    this.nowMs = NaN;
  }

  /** Keep the values of these columns, and of no others. */
  use(columns) {
    const wanted = new Set(columns.filter((name) => !name.startsWith("@")));
    for (const name of this.used.keys()) if (!wanted.has(name)) this.used.delete(name);
    for (const name of wanted) {
      if (this.used.has(name)) continue;
      this.used.set(name, { numbers: new Float64Array(this.capacity).fill(NaN), texts: [] });
      this.texts = []; // parse all once more
    }
  }

  /** Take over what changed in the objects of the first `n` slots; `nowMs` is the time to which ages are counted. */
  refresh(slots, n, nowMs) {
    this.nowMs = nowMs;
    this.streamMs = new Map([...this.store.streams.keys()].map((name) => [name, this.store.streamTimeMs(name, nowMs)]));
    const { objects } = this.store;
    if (this.capacity < objects.capacity) this.#grow(objects.capacity);
    for (let i = 0; i < n; i++) {
      const slot = slots[i];
      if (this.texts[slot] !== objects.texts[slot] || this.keys[slot] !== objects.keys[slot]) this.#take(slot);
    }
  }

  /** Return the number in a column; NaN if it has a text there, or nothing. Places are ordered from north to south. */
  number(name, slot) {
    const { objects } = this.store;
    switch (name) {
      case HEARD:
        return ((this.streamMs.get(objects.streams[slot]) ?? NaN) - objects.timeMs[slot]) / 1000;
      case PLACE:
        return -objects.lat[slot];
      case LONGITUDE:
        return objects.lon[slot];
      case LATITUDE:
        return objects.lat[slot];
      case ALTITUDE:
        return objects.alt[slot];
      default:
        return this.used.get(name)?.numbers[slot] ?? NaN;
    }
  }

  /** Return the text in a column; null if it has a number there, or nothing. */
  text(name, slot) {
    switch (name) {
      case NAME:
        return this.names[slot] ?? null;
      case KEY:
        return this.store.objects.keys[slot];
      case STREAM:
        return this.titleOf(this.store.objects.streams[slot]);
      default:
        return this.used.get(name)?.texts[slot] ?? null;
    }
  }

  titleOf(stream) {
    return this.store.streams.get(stream)?.title ?? stream;
  }

  /** Return a value as the table shows it at `nowMs`. */
  shown(name, slot, nowMs) {
    const { objects } = this.store;
    if (name === HEARD) return age(this.store.ageMs(slot, nowMs));
    if (name === PLACE) return place(objects.lon[slot], objects.lat[slot]);
    if (name === ALTITUDE) return Number.isFinite(objects.alt[slot]) ? altitude(objects.alt[slot]) : "\u2013";
    if (name === LONGITUDE || name === LATITUDE) return this.number(name, slot).toFixed(5);
    const number = this.number(name, slot);
    return !Number.isNaN(number) ? value(name, number) : (this.text(name, slot) ?? "\u2013");
  }

  /** Parse the properties of an object. */
  #take(slot) {
    const { objects } = this.store;
    this.texts[slot] = objects.texts[slot];
    this.keys[slot] = objects.keys[slot];
    const known = parsed(objects.texts[slot]);
    this.names[slot] = title(objects.keys[slot], known);
    for (const name in known)
      if (!this.known.has(name) && this.known.size < MOST_NAMES && !name.startsWith("@")) this.known.add(name);
    for (const [name, { numbers, texts }] of this.used) {
      const content = known[name];
      const number = typeof content === "number" && Number.isFinite(content);
      numbers[slot] = number ? content : NaN;
      texts[slot] = number ? null : textOf(content);
    }
  }

  #grow(capacity) {
    this.capacity = capacity;
    for (const column of this.used.values()) {
      const numbers = new Float64Array(capacity).fill(NaN);
      numbers.set(column.numbers);
      column.numbers = numbers;
    }
  }
}

function textOf(content) {
  if (content === undefined || content === null || content === "") return null;
  if (typeof content === "boolean") return content ? gettext("yes") : gettext("no");
  return typeof content === "object" ? JSON.stringify(content) : String(content);
}
