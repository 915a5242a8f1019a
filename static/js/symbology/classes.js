// Classes of values, each of which has a colour: ranges of numbers with round borders, or the most frequent texts. Pure.

import { roundSteps } from "../kinds/sketch/scales.js";

const MOST_RANGES = 7;
export const MOST_CATEGORIES = 8; // as many as Okabe and Ito have colours
export const OTHER = MOST_CATEGORIES; // the class of texts beyond these
export const UNKNOWN = MOST_CATEGORIES + 1; // the class of objects without a value
export const CLASSES = MOST_CATEGORIES + 2;

const TAIL = 0.02; // of the values at either end, which do not stretch the ranges

/**
 * Return the borders between ranges of numbers, ascending; the first range is below the first border, and the last from the last border on.
 *
 * @param {Float64Array} values finite numbers, in any order
 * @param {Record<string, any>} how `equal`, whether each range is to have as many of the numbers; `unit`, `[size, zero]`: the borders are
 *   round in `(number - zero) / size`
 */
export function bordersOf(values, { equal = false, unit: [size, zero] = [1, 0] } = {}) {
  if (values.length === 0) return [];
  const sorted = Float64Array.from(values, (value) => (value - zero) / size).sort();
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const [low, high] = [at(TAIL), at(1 - TAIL)];
  if (!(high > low)) return [];
  const shares = Array.from({ length: MOST_RANGES - 1 }, (_, i) => at((i + 1) / MOST_RANGES));
  const borders = equal
    ? shares.map((value) => rounded(value, high - low))
    : roundSteps(low, high, MOST_RANGES - 1).slice(0, MOST_RANGES - 1);
  return [...new Set(borders)].filter((border) => border > sorted[0]).map((border) => border * size + zero);
}

/** Round to two digits of a value, or of the width of all ranges if that is less. */
function rounded(value, width) {
  const step = 10 ** (Math.floor(Math.log10(Math.min(width, Math.abs(value) || width))) - 1);
  return Number((Math.round(value / step) * step).toPrecision(12));
}

/** Return the number of the range that a number lies in; `UNKNOWN` for NaN. */
export function rangeOf(borders, value) {
  if (Number.isNaN(value)) return UNKNOWN;
  let range = 0;
  while (range < borders.length && value >= borders[range]) range++;
  return range;
}

/**
 * Return the class of each of the most frequent texts, as a Map: the most frequent has class 0.
 *
 * @param {Map} counts by text
 */
export function categoriesOf(counts) {
  const most = [...counts].sort(([a, p], [b, q]) => q - p || (a < b ? -1 : 1)).slice(0, MOST_CATEGORIES);
  return new Map(most.map(([text], i) => [text, i]));
}
