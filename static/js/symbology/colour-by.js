// By what the objects are coloured, and which class each of them has. Pure: the clock is passed in.

import { vocabularyOf } from "../queries/filter-words.js";
import { age, label } from "../format.js";
import { filled, gettext, LOCALE, number } from "../i18n.js";
import { KIND_WORDS, KINDS } from "../objects/object-kinds.js";
import { reader } from "../objects/property-text.js";
import { bordersOf, categoriesOf, OTHER, rangeOf, UNKNOWN } from "./classes.js";
import { writtenIn } from "./units.js";

export const NOTHING = "nothing";
const PROPERTY = "property:";
const AGES_MS = [10_000, 30_000, 60_000, 120_000, 300_000, 600_000];
const SAMPLE = 5000; // objects that are looked at to find the classes
const OF_A_STREAM = 250; // objects of each stream that are looked at for names of properties
const GROWN = 1.5; // times as many objects as at the last look: the classes are found anew
const BUILT_IN = {
  [NOTHING]: gettext("Nothing"),
  speed: gettext("Speed"),
  altitude: gettext("Altitude"),
  kind: gettext("Kind"),
  age: gettext("Time since last report"),
};
// The class of each kind: there are fewer colours than kinds.
const CLASS_OF = KINDS.map(
  (kind) =>
    ({ ship: 0, aircraft: 1, bus: 2, other: 3, station: 4, aid: 5, craft: 6, radio: 6, beacon: 7 })[kind] ?? OTHER,
);
const NAMES = { speed: "speed_mps", altitude: "altitude_m" };

/** Return the name of the property that a choice is about; null if it is about something else. */
function propertyOf(by) {
  return by.startsWith(PROPERTY) && by.length > PROPERTY.length ? by.slice(PROPERTY.length) : null;
}

/** Return whether a text is a choice of what to colour by. */
export function isChoice(by) {
  return Object.hasOwn(BUILT_IN, by) || propertyOf(by) !== null;
}

/** Return what can be chosen, as `offer` of dom.js takes it: the built-in choices, and the properties that objects have. */
export function choicesOf(objects) {
  const { names } = vocabularyOf(
    [...objects.byStream.keys()].flatMap((stream) => objects.textsOf(stream).slice(0, OF_A_STREAM)),
  );
  const properties = [...names.keys()]
    .filter((name) => !Object.values(NAMES).includes(name))
    .map((name) => [PROPERTY + name, label(name)]);
  return [
    ["", Object.entries(BUILT_IN)],
    [gettext("Properties"), properties.sort(([, a], [, b]) => a.localeCompare(b, LOCALE, { numeric: true }))],
  ];
}

export class ColourBy {
  store;
  by;
  equal;
  classes;
  texts;

  /** @param {Record<string, any>} store read only, but for what trails keep */
  constructor(store) {
    Object.assign(this, { store, by: NOTHING, equal: false });
    this.#forget();
  }

  get active() {
    return this.by !== NOTHING;
  }

  /** How many ranges of numbers there are; null for categories. */
  get ranges() {
    return this.borders ? this.borders.length + 1 : null;
  }

  /** Choose by what objects are coloured, and whether each range of numbers is to have as many objects. */
  choose(by, equal = this.equal) {
    if (by !== this.by) this.store.objects.trails.forgetChosen();
    Object.assign(this, { by, equal });
    this.fit();
  }

  /** Find the classes anew, from the values that the objects have now. */
  fit() {
    this.#forget();
    const { objects } = this.store;
    const property = propertyOf(this.by);
    this.read = property && reader(property);
    this.fitted = objects.live;
    if (this.by === "age") this.borders = AGES_MS;
    else if (NAMES[this.by])
      this.#fitNumbers(
        this.#sample((slot) => objects[this.by][slot]),
        NAMES[this.by],
      );
    else if (property) this.#fitProperty(property);
    objects.chosen = property ? (slot) => this.#chosen(slot) : null;
  }

  /** Find the classes anew if there are many more objects than before. Return whether that was so. */
  refit() {
    if (!this.active || this.store.objects.live <= GROWN * this.fitted) return false;
    this.fit();
    return true;
  }

  /** Prepare for `classOf` at a time. */
  begin(nowMs) {
    this.numbers = NAMES[this.by] ? this.store.objects[this.by] : null;
    this.nowMs =
      this.by === "age"
        ? new Map([...this.store.streams.keys()].map((name) => [name, this.store.streamTimeMs(name, nowMs)]))
        : null;
  }

  /** Return the class of an object. */
  classOf(slot) {
    const { objects } = this.store;
    if (this.numbers) return rangeOf(this.borders, this.numbers[slot]);
    if (this.by === "kind") return CLASS_OF[objects.kind[slot]];
    if (this.by === "age") return this.ageClass(slot, objects.timeMs[slot]);
    const text = objects.texts[slot];
    if (this.texts[slot] !== text) {
      this.texts[slot] = text;
      this.classes[slot] = this.#classOf(this.read(text));
    }
    return this.classes[slot];
  }

  /** Return the class of an object as it was at one of the places of its trail. */
  classAt(slot, value, timeMs) {
    if (this.by === "kind") return this.classOf(slot);
    if (this.by === "age") return this.ageClass(slot, timeMs);
    if (this.borders) return rangeOf(this.borders, value);
    return Number.isNaN(value) ? this.classOf(slot) : value; // of a category the trail keeps the class
  }

  /** Which of the values that trails keep is needed. */
  get kept() {
    return NAMES[this.by] ? this.by : "chosen";
  }

  ageClass(slot, timeMs) {
    return rangeOf(this.borders, this.nowMs.get(this.store.objects.streams[slot]) - timeMs);
  }

  /** Return the legend: `{title, unit, rows: [[class, text], ...]}`. */
  legend() {
    const property = propertyOf(this.by);
    const title = BUILT_IN[this.by] ?? label(property);
    const unknown = [UNKNOWN, gettext("unknown")];
    if (this.by === "kind") return { title, unit: "", rows: kindRows() };
    if (this.by === "age")
      return { title, unit: "", rows: [...rangeTexts(this.borders.map((ms) => age(ms))), unknown] };
    if (this.borders) {
      const {
        symbol,
        unit: [size, zero],
      } = this.#unit();
      return {
        title,
        unit: symbol,
        rows: [...rangeTexts(this.borders.map((value) => number((value - zero) / size, 6))), unknown],
      };
    }
    const rows = [...this.categories].map(([text, i]) => [i, text]);
    return { title, unit: "", rows: [...rows, ...(this.others ? [[OTHER, gettext("other")]] : []), unknown] };
  }

  #forget() {
    Object.assign(this, {
      read: null,
      borders: null,
      numbers: null,
      categories: new Map(),
      others: false,
      texts: [],
      classes: [],
      typical: 0,
      fitted: 0,
    });
  }

  #unit() {
    return writtenIn(NAMES[this.by] ?? propertyOf(this.by), this.typical);
  }

  #fitNumbers(values, name) {
    const numbers = values.filter(Number.isFinite);
    this.typical = Math.max(0, ...numbers);
    this.borders = bordersOf(numbers, { equal: this.equal, unit: writtenIn(name, this.typical).unit });
  }

  #fitProperty(name) {
    const values = this.#sample((slot) => this.read(this.store.objects.texts[slot])).filter(
      (value) => value !== undefined,
    );
    const numbers = values.filter((value) => typeof value === "number");
    if (numbers.length > values.length / 2) return this.#fitNumbers(numbers, name);
    const counts = new Map();
    for (const value of values) counts.set(String(value), (counts.get(String(value)) ?? 0) + 1);
    this.categories = categoriesOf(counts);
    this.others = counts.size > this.categories.size;
    return this.store.objects.trails.forgetChosen();
  }

  /** Return the values of objects, of at most about `SAMPLE` of them, evenly chosen. */
  #sample(valueOf) {
    const { size, live, alive } = this.store.objects;
    const step = Math.max(1, Math.floor(live / SAMPLE));
    const values = [];
    for (let slot = 0; slot < size; slot += step) if (alive[slot]) values.push(valueOf(slot));
    return values;
  }

  #classOf(value) {
    if (value === undefined) return UNKNOWN;
    if (this.borders) return rangeOf(this.borders, typeof value === "number" ? value : NaN);
    return this.categories.get(String(value)) ?? OTHER;
  }

  /** Return what a trail keeps of the chosen property: a number as it is, or the class of a text. */
  #chosen(slot) {
    if (!this.borders) return this.classOf(slot);
    const value = this.read(this.store.objects.texts[slot]);
    return typeof value === "number" ? value : NaN;
  }
}

/** Return the legend's rows of ranges between borders, given their texts. */
function rangeTexts(texts) {
  if (texts.length === 0) return [[0, gettext("all")]];
  const between = texts
    .slice(1)
    .map((text, i) => [i + 1, filled(gettext("%(from)s to %(to)s"), { from: texts[i], to: text })]);
  return [
    [0, filled(gettext("below %(value)s"), { value: texts[0] })],
    ...between,
    [texts.length, filled(gettext("%(value)s and more"), { value: texts.at(-1) })],
  ];
}

/** Return the rows of the legend of kinds: kinds of one class are one row. */
function kindRows() {
  const words = (one) => KINDS.filter((_, kind) => CLASS_OF[kind] === one).map((kind) => KIND_WORDS[kind]);
  return [...new Set(CLASS_OF)].sort((a, b) => a - b).map((one) => [one, words(one).join(", ")]);
}
