// Plans about tracks, whose reports are noisy: how they are made of ranges. Pure.

import { formOf } from "../../shapes.js";

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
  return {
    ...kept,
    kind: "track",
    area: formOf(area) ? area : (compare ?? area),
    ...noise,
    ...(emit && emit !== "all" ? { emit } : {}),
  };
}
