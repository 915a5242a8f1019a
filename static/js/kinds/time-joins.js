// The parts of plans of joins over event time, and what the form shows of them. Pure.

import { kindOf } from "./registry.js";

const KINDS = { window: "window_join", interval: "interval_join", encounter: "encounter" };
const KEYS = [
  "window_s",
  "slide_s",
  "start_s",
  "lower_s",
  "upper_s",
  "bin_s",
  "lateness_s",
  "idle_s",
  "mirrored",
  "for_s",
  "gap_s",
  "away_from",
  "within_m",
];
const MINUTE_S = 60;
const LEAST_BIN_S = 1;

/** What the form begins with. An interval reaches from so long before the object's report to so long after it. */
const STANDARD = {
  windowS: 60,
  slideS: null,
  beforeS: 60,
  afterS: 60,
  latenessS: 10,
  idleS: 30,
  forMin: 30,
  gapMin: 10,
  away: "",
  awayM: 10_000,
};

/**
 * Return `{when, windowS, slideS, beforeS, afterS, latenessS, idleS, forMin, gapMin, away, awayM}` of a plan. `slideS` is null if
 * windows follow each other; `away` is the name of a layer, or empty.
 */
export function timesOf(plan) {
  const {
    window_s: windowS,
    slide_s: slideS,
    lower_s: lowerS,
    upper_s: afterS,
    lateness_s: latenessS,
    idle_s: idleS,
  } = plan ?? {};
  const beforeS = lowerS === undefined ? undefined : 0 - lowerS;
  const { for_s: forS, gap_s: gapS, away_from: away } = plan ?? {};
  const met = { forMin: minutes(forS), gapMin: minutes(gapS), away: away?.layer, awayM: away?.distance };
  const known = { ...met, windowS, slideS: slideS === windowS ? null : slideS, beforeS, afterS, latenessS, idleS };
  const given = Object.entries(known).filter(([, value]) => value !== undefined);
  return { when: kindOf(plan).when ?? "now", ...STANDARD, ...Object.fromEntries(given) };
}

function minutes(seconds) {
  return seconds === undefined ? undefined : seconds / MINUTE_S;
}

/** Return a plan without what only joins over event time have. */
export function timeless(plan) {
  const kept = Object.entries(plan ?? {}).filter(([key]) => !KEYS.includes(key));
  const { emit, ...others } = Object.fromEntries(kept);
  return emit && !kindOf(plan).told ? { ...others, emit } : others;
}

/** Return a join as one over event time, if `times`, as `timesOf` returns them, say so. It keeps what the form does not show of `before`. */
export function timed(/** @type {Record<string, any>} */ { emit, ...plan }, before, times) {
  const kind = KINDS[times.when];
  const own = { window: windowOf, interval: intervalOf, encounter: encounterOf }[times.when](before, times);
  const kept = times.when === "encounter" && emit && emit !== "all" ? { emit } : {};
  const mirrored = before?.mirrored === undefined ? {} : { mirrored: before.mirrored };
  return { ...plan, ...kept, kind, ...own, lateness_s: times.latenessS, idle_s: times.idleS, ...mirrored };
}

function encounterOf(_before, { forMin, gapMin, away, awayM }) {
  const layer = away ? { away_from: { layer: away, distance: awayM } } : {};
  return { for_s: forMin * MINUTE_S, gap_s: gapMin * MINUTE_S, ...layer };
}

function windowOf(before, { windowS, slideS }) {
  const slide = slideS === null ? {} : { slide_s: slideS };
  const start = before?.start_s === undefined ? {} : { start_s: before.start_s };
  return { window_s: windowS, ...slide, ...start };
}

/** Return the keys of an interval. Bins that were as long as the old interval, as they are by default, follow the new one. */
function intervalOf(before, { beforeS, afterS }) {
  const { lower_s: lower, upper_s: upper, bin_s: bin } = before ?? {};
  const chosen = bin !== undefined && bin !== Math.max(upper - lower, LEAST_BIN_S);
  return { lower_s: 0 - beforeS, upper_s: afterS, ...(chosen ? { bin_s: bin } : {}) };
}
