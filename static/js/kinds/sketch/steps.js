// The steps of a slider over the times that a sketch has: hours, days, weeks, months or years in UTC. Pure.

import { filled, gettext } from "../../i18n.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MONDAY_MS = -3 * DAY_MS; // 1970 began on a Thursday
const MOST = 240;
/** @type {[string, number][]} */
const LENGTHS = [
  ["hour", HOUR_MS],
  ["day", DAY_MS],
  ["week", 7 * DAY_MS],
  ["month", 30.4 * DAY_MS],
  ["year", 365.25 * DAY_MS],
];

/** Return the shortest length of a step that a sketch of such time bins tells apart, and with which the slider has at most 240 steps. */
export function stepFor(firstMs, lastMs, binMs) {
  const fits = (/** @type {any[]} */ [, ms]) => ms >= binMs && (lastMs - firstMs) / ms <= MOST;
  return (LENGTHS.find(fits) ?? LENGTHS[LENGTHS.length - 1])[0];
}

/** Return the steps between two times, both included, as `[fromMs, toMs]`; the end does not belong to a step. */
export function stepsBetween(firstMs, lastMs, step) {
  const steps = [];
  if (!(lastMs >= firstMs)) return steps;
  for (let from = startOf(step, firstMs); from <= lastMs;) {
    const to = endOf(step, from);
    steps.push([from, to]);
    from = to;
  }
  return steps;
}

/** Say in words which time a step is. */
export function stepText([fromMs, toMs], step) {
  const text = new Date(fromMs).toISOString();
  if (step === "year") return text.slice(0, 4);
  if (step === "month") return text.slice(0, 7);
  if (step === "day") return text.slice(0, 10);
  if (step === "week") return filled(gettext("week of %(day)s"), { day: text.slice(0, 10) });
  return filled(gettext("%(from)s to %(to)s"), {
    from: `${text.slice(0, 10)} ${text.slice(11, 16)}`,
    to: new Date(toMs).toISOString().slice(11, 16),
  });
}

function startOf(step, ms) {
  const date = new Date(ms);
  if (step === "year") return Date.UTC(date.getUTCFullYear(), 0);
  if (step === "month") return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
  if (step === "week") return Math.floor((ms - MONDAY_MS) / (7 * DAY_MS)) * 7 * DAY_MS + MONDAY_MS;
  const each = step === "day" ? DAY_MS : HOUR_MS;
  return Math.floor(ms / each) * each;
}

function endOf(step, from) {
  const date = new Date(from);
  if (step === "year") return Date.UTC(date.getUTCFullYear() + 1, 0);
  if (step === "month") return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  return from + { week: 7 * DAY_MS, day: DAY_MS, hour: HOUR_MS }[step];
}
