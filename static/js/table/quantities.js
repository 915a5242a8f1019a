// What the numbers of a column's filter are measured in: the unit that the page shows, or one that is written. Pure.

import { units } from "../units.js";

const [FOOT, MILE, NAUTICAL_MILE] = [0.3048, 1609.344, 1852];
const KNOT = NAUTICAL_MILE / 3600;
const LENGTHS = { m: 1, km: 1000, nm: NAUTICAL_MILE, ft: FOOT, mi: MILE };
const SPEEDS = { "m/s": 1, "km/h": 1 / 3.6, kn: KNOT, kt: KNOT, kts: KNOT, mph: MILE / 3600, "ft/min": FOOT / 60 };
const TEMPERATURES = { "\u00b0c": 1, "\u00b0f": 1 / 1.8 };

/**
 * The quantities: `sizes` of the units in which one may be written, in SI units; `shown()`, the unit in which the page shows it;
 * `step`, the last digit of that.
 */
const QUANTITIES = {
  speed: { sizes: SPEEDS, shown: () => units().speed[0], step: 0.1 },
  climb: { sizes: SPEEDS, shown: () => units().climb[0], step: 0.1 },
  length: { sizes: LENGTHS, shown: () => units().short[0], step: 0.1 },
  altitude: { sizes: LENGTHS, shown: () => units().altitude[0], step: 1 },
  mass: { sizes: { kg: 1, lb: 0.45359237, t: 1000 }, shown: () => units().mass[0], step: 1 },
  temperature: { sizes: TEMPERATURES, shown: () => (units().celsius ? "\u00b0C" : "\u00b0F"), step: 0.1 },
};

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

/** Return the units of a column, `{own, shown}`: that of its values, and that in which the page shows them; null for other columns. */
export function unitsOf(name) {
  const [, quantity, own] = ENDINGS.find(([ending]) => ending.test(name)) ?? [];
  return quantity ? { own, shown: QUANTITIES[quantity].shown() } : null;
}

/**
 * Return a number that is written in a unit as `{amount, slack}` in a column's own unit; null for a unit in which it cannot be.
 * Values that the page shows alike differ from it by up to `slack`.
 */
export function converted(name, number, unit) {
  const [, quantity, own] = ENDINGS.find(([ending]) => ending.test(name)) ?? [];
  const { sizes, step } = QUANTITIES[quantity];
  const written = unit.toLowerCase();
  if (!Object.hasOwn(sizes, written)) return null;
  if (written === own.toLowerCase()) return { amount: number, slack: 0 };
  const size = sizes[written] / sizes[own.toLowerCase()];
  return { amount: (number - (written === "\u00b0f" ? 32 : 0)) * size, slack: (step / 2) * size };
}
