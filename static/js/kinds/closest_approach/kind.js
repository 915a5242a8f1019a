// Closest approaches: pairs of objects that will be close to each other soon.

import { length, shapeText } from "../../format.js";
import { filled, gettext, number } from "../../i18n.js";
import { formOf } from "../../shapes.js";
import { PartnerFields } from "../partner-fields.js";
import { boxWith, without } from "../plan.js";
import { joined } from "../words.js";
import { closestPairs, drawClosest } from "./drawing.js";
import { ClosestFields } from "./fields.js";

function closeOf(_kept, { stream, where, box, shape, close }, before) {
  const { area: own, join: old, mirrored: _mirrored, ...kept } = before.kind === "closest_approach" ? before : {};
  const { filters, emit } = before;
  const others = { ...(filters ? { filters } : {}), ...(emit && emit !== "all" ? { emit } : {}) };
  const { where: _where, ...partners } = old ?? {};
  const join = { ...partners, stream: close.stream, ...(close.where ? { where: close.where } : {}) };
  const limits = { within_m: close.withinM, within_s: close.withinS, ...(close.mirrored ? { mirrored: true } : {}) };
  const area = shape ?? (box && boxWith(box, formOf(own) ? null : own));
  return { ...kept, stream, kind: "closest_approach", join, ...limits, where, ...others, ...(area ? { area } : {}) };
}

function closestPlanText({ within_m: withinM, within_s: withinS, join, stream }, titleOf) {
  const values = {
    distance: length(withinM),
    minutes: number(withinS / 60, 1),
    stream: titleOf("stream", join?.stream ?? stream),
  };
  return filled(gettext("will come within %(distance)s of %(stream)s in %(minutes)s min"), values);
}

export const closestApproach = {
  report: "close",
  paired: true,
  close: true,
  drawing: { find: closestPairs, draw: drawClosest },
  claims: ({ kind }) => kind === "closest_approach",
  makes: () => true,
  plan: closeOf,
  leave: (plan) => without(plan, ["within_m", "mirrored", "gap_s"]),
  words: (plan, titleOf) => joined(closestPlanText(plan, titleOf), shapeText(plan.area)),
  form: { parts: [PartnerFields, ClosestFields], pairs: true },
};
