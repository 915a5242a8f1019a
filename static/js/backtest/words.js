// What a back-test asks and says, as texts: pure.

import { count, utcTime } from "../format.js";

export const SPANS = [
  ["3600", "the last hour"],
  ["86400", "the last day"],
  ["604800", "the last week"],
];

/** The message that asks what a plan would have told in the last so many seconds. */
export function questionOf(plan, lastS, nowMs) {
  return { type: "backtest.start", plan, span: { from: nowMs / 1000 - Number(lastS) } };
}

/** How a back-test goes, in words. */
export function progressText({ share, at_us: atUs, found }, ruled) {
  const far = `${Math.floor(100 * share)} %, up to ${utcTime(atUs / 1000)}`;
  return `${far}: ${ruled ? times(found, "alarm") : times(found, "entry", "entries")} so far`;
}

/** What a back-test has found, in words. */
export function resultText({ summary, stopped, at_us: atUs, stored }, ruled, spanText) {
  const { entered, left, total } = summary;
  const until = stopped ? ` It stopped at ${utcTime(atUs / 1000)}, ${stopped}.` : "";
  if (!stored) return `Nothing was stored in ${spanText}, so there is nothing to try this on.${until}`;
  if (ruled) return `Would have fired ${times(total, "time")} in ${spanText}.${until}`;
  const before = total - entered;
  const within = before ? `; ${count(before)} ${before === 1 ? "was" : "were"} inside at the beginning` : "";
  return `In ${spanText}, objects would have entered ${times(entered, "time")} and left ${times(left, "time")}${within}.${until}`;
}

/** One row of the list: what was in the answer, and from when to when. */
export function rowText({ key, partner, start_us: startUs, end_us: endUs }) {
  const begin = utcTime(startUs / 1000);
  const end = endUs === null ? "had not ended" : `${minutes(endUs - startUs)}`;
  return [partner ? `${key} with ${partner}` : key, `${begin}, ${end}`];
}

/** The place of a row as [longitude, latitude]; null if it has none. */
export function placeOfRow({ bounds }) {
  const n = bounds.length / 2;
  const place = [0, 1].map((axis) => (bounds[axis] + bounds[n + axis]) / 2);
  return [0, 1, n, n + 1].every((at) => Number.isFinite(bounds[at])) ? place : null;
}

function minutes(us) {
  const s = Math.round(us / 1e6);
  if (s < 60) return `for ${s} s`;
  return s < 5400 ? `for ${Math.round(s / 60)} min` : `for ${(s / 3600).toFixed(1)} h`;
}

function times(number, one, several = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : several}`;
}
