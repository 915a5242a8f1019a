// Ranges about tracks, whose reports are noisy.

import { length, speed } from "../../format.js";
import { filled, gettext } from "../../i18n.js";
import { range } from "../range/kind.js";
import { areaText } from "../words.js";
import { GAP_S, noiseless, tracked } from "./noise.js";

/** Say what a plan takes into account: ", accurate to 10 m, at most 50 m/s, with crossings between reports". */
function noiseText(/** @type {Record<string, any>} */ { accuracy = 0, fastest_m_s: most, gap_s: gapS = GAP_S }) {
  const parts = [];
  if (typeof accuracy === "object")
    parts.push(filled(gettext("accuracy by %(property)s"), { property: accuracy.property }));
  else if (accuracy) parts.push(filled(gettext("accurate to %(distance)s"), { distance: length(accuracy) }));
  if (most) parts.push(filled(gettext("at most %(speed)s"), { speed: speed(most) }));
  if (gapS) parts.push(gettext("with crossings between reports"));
  return parts.map((part) => `, ${part}`).join("");
}

export const track = {
  report: "inside",
  claims: ({ kind }) => kind === "track",
  makes: ({ noise }) => Boolean(noise),
  leave: noiseless,
  plan: (before, fields) => tracked(range.plan(before, fields), fields.noise),
  words: (plan) => `${areaText(plan.area)}${noiseText(plan)}`,
};
