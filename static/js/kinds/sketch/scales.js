// Scales of charts and legends: round steps, places of values, times on an axis. Pure.

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Return round numbers between two values, at most `most` of them, in even steps of 1, 2 or 5 times a power of ten. */
export function roundSteps(low, high, most = 5) {
  if (!(high > low)) return Number.isFinite(low) ? [low] : [];
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find((factor) => factor * power >= rough * (1 - 1e-9)) ?? 10) * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Return the smallest and the largest of the numbers in lists; null and NaN are left out. `null` if there is none. */
export function extentOf(...lists) {
  const known = lists.flat().filter((value) => value !== null && Number.isFinite(value));
  if (known.length === 0) return null;
  return [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))];
}

/** Return an extent with some room on both sides; one that has no width gets one. */
export function roomy(/** @type {any[]} */ [low, high], share = 0.06) {
  const room = high > low ? share * (high - low) : Math.abs(low) / 2 || 1;
  return [low - room, high + room];
}

/** Return a function that maps `[low, high]` to `[from, to]` in a straight line. */
export function linear(/** @type {any[]} */ [low, high], /** @type {any[]} */ [from, to]) {
  const factor = high === low ? 0 : (to - from) / (high - low);
  return (value) => from + (value - low) * factor;
}

/** Return `[[ms, text], ...]`: what to write at a time axis, at most `most` labels: years, months, days or hours in UTC. */
export function timeLabels(fromMs, toMs, most = 5) {
  const [unit, count] = unitOf((toMs - fromMs) / most);
  const labels = [];
  for (let at = startOf(unit, count, fromMs); at <= toMs; at = next(unit, count, at)) {
    if (at >= fromMs) labels.push([at, labelOf(unit, at)]);
  }
  return labels;
}

function unitOf(ms) {
  const units = [
    ...[1, 2, 3, 6, 12].map((count) => ["hour", count, HOUR_MS]),
    ...[1, 2, 7, 14].map((count) => ["day", count, DAY_MS]),
    ...[1, 3, 6].map((count) => ["month", count, 31 * DAY_MS]),
    ...[1, 2, 5, 10, 20, 50].map((count) => ["year", count, 366 * DAY_MS]),
  ];
  return (
    /** @type {[string, number, number][]} */ (units).find(([, count, each]) => count * each >= ms) ?? [
      "year",
      100,
      Infinity,
    ]
  );
}

function startOf(unit, count, ms) {
  const date = new Date(ms);
  if (unit === "year") return Date.UTC(Math.floor(date.getUTCFullYear() / count) * count, 0);
  if (unit === "month") return Date.UTC(date.getUTCFullYear(), Math.floor(date.getUTCMonth() / count) * count);
  const each = count * (unit === "day" ? DAY_MS : HOUR_MS);
  return Math.floor(ms / each) * each;
}

function next(unit, count, ms) {
  const date = new Date(ms);
  if (unit === "year") return Date.UTC(date.getUTCFullYear() + count, 0);
  if (unit === "month") return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + count);
  return ms + count * (unit === "day" ? DAY_MS : HOUR_MS);
}

function labelOf(unit, ms) {
  const text = new Date(ms).toISOString();
  return { year: text.slice(0, 4), month: text.slice(0, 7), day: text.slice(5, 10), hour: text.slice(11, 16) }[unit];
}
