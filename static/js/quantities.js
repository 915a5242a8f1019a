// What numbers are measured in: the unit of a property's values, that in which the page shows them, and one that is written. Pure.

import { LENGTHS_M, units } from "./units.js";

const KNOT = LENGTHS_M.nm / 3600;
const MPS = { "m/s": 1, "km/h": 1 / 3.6, kn: KNOT, mph: LENGTHS_M.mi / 3600, "ft/min": LENGTHS_M.ft / 60 };
const FAHRENHEIT = "\u00b0F";

/**
 * The quantities: `sizes` of the units in which one may be written, in SI units; `shown(amount)`, the unit in which the page
 * shows it, for lengths by the amount in metres; `step`, the last digit of that.
 */
const QUANTITIES = {
  speed: { sizes: MPS, shown: () => units().speed[0], step: 0.1 },
  climb: { sizes: MPS, shown: () => units().climb[0], step: 0.1 },
  length: { sizes: LENGTHS_M, shown: lengthUnit, step: 0.1 },
  altitude: { sizes: LENGTHS_M, shown: () => units().altitude[0], step: 1 },
  mass: { sizes: { kg: 1, lb: 0.45359237, t: 1000 }, shown: () => units().mass[0], step: 1 },
  temperature: {
    sizes: { "\u00b0C": 1, [FAHRENHEIT]: 1 / 1.8 },
    shown: () => (units().celsius ? "\u00b0C" : FAHRENHEIT),
    step: 0.1,
  },
};

// Other ways to write a unit, in small letters.
const ALIASES = { kt: "kn", kts: "kn", knots: "kn", nmi: "nm", kmh: "km/h", fpm: "ft/min", mps: "m/s" };

/**
 * What something is measured in.
 *
 * @typedef {{quantity: string, own: string}} Measure a name of `QUANTITIES`, and the unit of its numbers
 */

/** What distances and speeds of plans are measured in. */
export const LENGTH = { quantity: "length", own: "m" };
export const SPEED = { quantity: "speed", own: "m/s" };

// The quantity and the unit of a property, by the ending of its name.
/** @type {[RegExp, string, string][]} */
const ENDINGS = [
  [/vertical.*_mps$|(climb|descent).*_mps$/, "climb", "m/s"],
  [/_mps$/, "speed", "m/s"],
  [/_kmh$/, "speed", "km/h"],
  [/_kn$/, "speed", "kn"],
  [/_fpm$/, "climb", "ft/min"],
  [/^@altitude$|(altitude|elevation).*_m$/, "altitude", "m"],
  [/_ft$/, "altitude", "ft"],
  [/_nm$/, "length", "nm"],
  [/_km$/, "length", "km"],
  [/_m$/, "length", "m"],
  [/_kg$/, "mass", "kg"],
  [/_c$/, "temperature", "\u00b0C"],
];

const SHOWN_DIGITS = 7;

/** All units, the longest first. */
export const UNITS = [
  ...new Set([...Object.values(QUANTITIES).flatMap(({ sizes }) => Object.keys(sizes)), ...Object.keys(ALIASES)]),
].sort((a, b) => b.length - a.length);

/**
 * Return what a property is measured in; null if its name does not say.
 *
 * @param {string} name
 * @returns {Measure | null}
 */
export function measureOf(name) {
  const [, quantity, own] = ENDINGS.find(([ending]) => ending.test(name)) ?? [];
  return quantity && own ? { quantity, own } : null;
}

/** Return the units of a column, `{own, shown}`: that of its values, and that in which the page shows them; null for other columns. */
export function unitsOf(name) {
  const measure = measureOf(name);
  return measure && { own: measure.own, shown: shownUnit(measure) };
}

/** Return the unit in which the page shows an amount that is in the unit of a measure; lengths without an amount in the short one. */
export function shownUnit({ quantity, own }, amount = 0) {
  const { sizes, shown } = QUANTITIES[quantity];
  return shown(Math.abs(amount) * sizes[own]);
}

/** Return the units in which something may be written. */
export function writableIn({ quantity }) {
  return Object.keys(QUANTITIES[quantity].sizes);
}

/** Return a unit as `writableIn` has it; undefined if something cannot be written in it. */
export function unitNamed({ quantity }, written) {
  const small = written.toLowerCase();
  const name = ALIASES[small] ?? small;
  return Object.keys(QUANTITIES[quantity].sizes).find((unit) => unit.toLowerCase() === name);
}

/**
 * Return a number in the unit of a measure for one in another unit. It is not rounded, and calculated as the decoders do: what a feed
 * calls 10 knots equals what a person does.
 */
export function toOwn(measure, number, unit) {
  return unit === measure.own ? number : (number - zero(unit)) * sizeOf(measure, unit) + zero(measure.own);
}

/** Return a number in another unit for one in the unit of a measure, with as few digits as lead back to it, but seven at most. */
export function fromOwn(measure, number, unit) {
  if (unit === measure.own) return number;
  const exact = (number - zero(measure.own)) / sizeOf(measure, unit) + zero(unit);
  for (let digits = 1; digits < SHOWN_DIGITS; digits++) {
    const few = Number(exact.toPrecision(digits));
    if (toOwn(measure, few, unit) === number) return few;
  }
  return Number(exact.toPrecision(SHOWN_DIGITS));
}

/**
 * Return a number that is written in a unit as `{amount, slack}` in a column's own unit; null for a unit in which it cannot be.
 * Values that the page shows alike differ from it by up to `slack`.
 */
export function converted(name, number, written) {
  const measure = /** @type {Measure} */ (measureOf(name));
  const unit = unitNamed(measure, written);
  if (!unit) return null;
  const slack = unit === measure.own ? 0 : (QUANTITIES[measure.quantity].step / 2) * sizeOf(measure, unit);
  return { amount: toOwn(measure, number, unit), slack };
}

/** The size of a unit in the unit of a measure. */
function sizeOf({ quantity, own }, unit) {
  const { sizes } = QUANTITIES[quantity];
  return sizes[unit] / sizes[own];
}

function zero(unit) {
  return unit === FAHRENHEIT ? 32 : 0;
}

function lengthUnit(metres) {
  const { short, long, shortM } = units();
  return (metres >= shortM ? long : short)[0];
}
