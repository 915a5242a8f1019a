// Makes the series of the charts from the past figures. Pure.

import { number } from "../i18n.js";

const US = 1e6;
// Without an entry for so long, a chart has a gap.
const GAP_S = 20;

/** Return the times of entries in seconds since 1970. */
export const times = (past) => past.map((entry) => entry.at_us / US);

/** Return whether there is a value: entries of the past have no newer figures. */
export const isKnown = (value) => value !== null && value !== undefined;

/** Return a value of each entry; null where it is not known. */
export const values = (past, read) => past.map((entry) => read(entry) ?? null);

/**
 * Return the growth per second of a count since the entry before; null at the first entry, behind a gap, and where the count is
 * smaller than before, since a program has started again.
 */
export function rates(past, read) {
  return past.map((entry, i) => {
    const before = past[i - 1];
    if (!before) return null;
    const [was, is] = [read(before), read(entry)];
    const seconds = (entry.at_us - before.at_us) / US;
    if (!isKnown(was) || !isKnown(is) || is < was || seconds <= 0 || seconds > GAP_S) return null;
    return (is - was) / seconds;
  });
}

/** Return the growth of one count per growth of another, such as the time of a stage per batch. */
export function ratios(past, read, per) {
  const [over, under] = [rates(past, read), rates(past, per)];
  return over.map((value, i) => (value === null || !under[i] ? null : value / under[i]));
}

/** Add a null between entries that are far apart, so that no line joins them. Return the times and the series. */
export function withGaps(seconds, series) {
  const [x, ys] = [[], series.map(() => [])];
  seconds.forEach((at, i) => {
    if (i > 0 && at - seconds[i - 1] > GAP_S) {
      x.push(at - 0.001);
      for (const y of ys) y.push(null);
    }
    x.push(at);
    ys.forEach((y, k) => y.push(series[k][i]));
  });
  return [x, ...ys];
}

/** Return entries with later ones, without those older than an hour before the newest. */
export function extended(past, later) {
  const all = [...past, ...later.filter((entry) => !past.length || entry.at_us > past.at(-1).at_us)];
  const oldest = all.length ? all.at(-1).at_us - 3600 * US : 0;
  return all.filter((entry) => entry.at_us >= oldest);
}

const UNITS = { B: 1e9, "B/s": 1e9 };
/** @type {[number, string][]} */
const PREFIXES = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** Write a figure with its unit, short enough for an axis: 12.5 k, 3.1 MB, 250 ms. */
export function figure(value, unit = "") {
  if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
  if (unit === "s") return value !== 0 && Math.abs(value) < 1 ? `${trimmed(value * 1000)} ms` : `${trimmed(value)} s`;
  if (unit === "%") return `${trimmed(value)} %`;
  if (unit === "/s") return `${figure(value)}/s`;
  const [each, prefix] = PREFIXES.find(([size]) => Math.abs(value) >= size) ?? [1, ""];
  const tail = unit in UNITS ? `${prefix}${unit}` : prefix;
  return `${trimmed(value / each)}${tail ? ` ${tail}` : ""}`;
}

function trimmed(value) {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return number(value, digits);
}
