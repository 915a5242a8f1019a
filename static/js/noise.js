// Plans about tracks, whose reports are noisy: how they are made, and how they read. Pure except for the chosen units.

import { length, number } from "./format.js";
import { filled, gettext } from "./i18n.js";
import { formOf } from "./shapes.js";

/** Between reports that are at most so many seconds apart, an object moved along the straight line. */
export const GAP_S = 300;

const NOISE = ["accuracy", "fastest_m_s", "gap_s"];

/** Return a plan about tracks as a range query; any other plan as it is. */
export function noiseless(plan) {
  if (plan?.kind !== "track") return plan;
  const { kind, area, ...kept } = Object.fromEntries(Object.entries(plan).filter(([key]) => !NOISE.includes(key)));
  return formOf(area) ? { ...kept, area } : { ...kept, compare: area };
}

/** Return a range query as one about tracks, with `noise` as `NoiseFields.read` returns it. */
export function tracked({ kind, report, transform, aggregate, compare, area, emit, ...kept }, noise) {
  return { ...kept, kind: "track", area: formOf(area) ? area : (compare ?? area), ...noise, ...(emit && emit !== "all" ? { emit } : {}) };
}

/** Say what a plan takes into account: ", accurate to 10 m, at most 50 m/s, with crossings between reports". */
export function noiseText({ accuracy = 0, fastest_m_s: most, gap_s: gapS = GAP_S }) {
  const parts = [];
  if (typeof accuracy === "object") parts.push(filled(gettext("accuracy by %(property)s"), { property: accuracy.property }));
  else if (accuracy) parts.push(filled(gettext("accurate to %(distance)s"), { distance: length(accuracy) }));
  if (most) parts.push(filled(gettext("at most %(speed)s m/s"), { speed: number(most, 1) }));
  if (gapS) parts.push(gettext("with crossings between reports"));
  return parts.map((part) => `, ${part}`).join("");
}
