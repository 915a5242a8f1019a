// Where objects were: their last places, with times and what they may be coloured by. Pure.

export const MOST_POINTS = 128; // of one object
export const LENGTHS_MIN = [0, 1, 5, 15, 60];
export const USUAL_MIN = 5;
/** What is kept of each place beside its time, in this order. */
const VALUES = ["speed", "altitude", "chosen"];

const FIRST_POINTS = 8;
const MOST_IN_ALL = 2_000_000; // points of 24 bytes; beyond it no trail gets longer
const WORLD = 2 ** 32; // steps of a Web Mercator axis, of 9 mm at the equator

/** The trails of objects by slot. Places are Web Mercator positions of unit size. */
export class Trails {
  constructor() {
    this.bySlot = [];
    this.points = 0; // for which there is room, of all trails
    this.sinceMs = null; // times are kept relative to the first one
    this.keep(USUAL_MIN);
    this.found = {
      n: 0,
      x: new Float64Array(MOST_POINTS),
      y: new Float64Array(MOST_POINTS),
      timeMs: new Float64Array(MOST_POINTS),
      value: new Float32Array(MOST_POINTS),
    };
  }

  /** Keep the places of so many minutes: the longer, the farther apart. */
  keep(minutes) {
    this.spacingMs = (60_000 * minutes) / (MOST_POINTS - 2);
  }

  /** Add the newest place of an object. Of places in quick succession only the last one is kept. */
  add(slot, x, y, timeMs, values) {
    this.sinceMs ??= timeMs;
    let trail = this.bySlot[slot];
    if (!trail) trail = this.bySlot[slot] = this.#made(FIRST_POINTS);
    const ms = timeMs - this.sinceMs;
    const { count } = trail;
    const near = count > 1 && trail.ms[at(trail, count - 1)] - trail.ms[at(trail, count - 2)] < (this.spacingMs ?? 0);
    if (!near && count === trail.size && trail.size < MOST_POINTS && this.points < MOST_IN_ALL)
      trail = this.#grown(slot);
    if (!near) trail.count++;
    const place = at(trail, trail.count - 1);
    trail.x[place] = Math.min(Math.round(x * WORLD), x < 1 ? WORLD - 1 : WORLD);
    trail.y[place] = Math.min(Math.round(y * WORLD), WORLD - 1);
    trail.ms[place] = ms;
    values.forEach((value, i) => (trail.values[i][place] = value));
  }

  remove(slot) {
    this.points -= this.bySlot[slot]?.size ?? 0;
    this.bySlot[slot] = null;
  }

  /** Forget what the trails may be coloured by beside speed and altitude, since it will be another property. */
  forgetChosen() {
    for (const trail of this.bySlot) trail?.values[VALUES.indexOf("chosen")].fill(NaN);
  }

  /**
   * Return the places of an object since a time, oldest first, as `{n, x, y, timeMs, value}`, valid until the next call;
   * `value` is one of `VALUES`.
   */
  read(slot, sinceMs = -Infinity, value = "speed") {
    const { found } = this;
    const trail = this.bySlot[slot];
    found.n = 0;
    if (!trail) return found;
    const values = trail.values[VALUES.indexOf(value)];
    for (let i = Math.max(0, trail.count - trail.size); i < trail.count; i++) {
      const place = at(trail, i);
      const timeMs = trail.ms[place] + this.sinceMs;
      if (timeMs < sinceMs) continue;
      found.x[found.n] = trail.x[place] / WORLD;
      found.y[found.n] = trail.y[place] / WORLD;
      found.timeMs[found.n] = timeMs;
      found.value[found.n++] = values[place];
    }
    return found;
  }

  #made(size) {
    this.points += size;
    const values = VALUES.map(() => new Float32Array(size));
    return { size, count: 0, x: new Uint32Array(size), y: new Uint32Array(size), ms: new Float64Array(size), values };
  }

  /** Return a trail with room for twice as many places, in place of an object's full one. */
  #grown(slot) {
    const old = this.bySlot[slot];
    const trail = this.#made(Math.min(2 * old.size, MOST_POINTS));
    for (let i = old.count - old.size; i < old.count; i++) {
      const [from, to] = [at(old, i), at(trail, trail.count++)];
      for (const name of ["x", "y", "ms"]) trail[name][to] = old[name][from];
      old.values.forEach((values, k) => (trail.values[k][to] = values[from]));
    }
    this.points -= old.size;
    return (this.bySlot[slot] = trail);
  }
}

/** Return where the place with a number, counted from the first one ever, is in a trail. */
function at(trail, number) {
  return number % trail.size;
}
