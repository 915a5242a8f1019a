// Ranges: objects inside an area, or outside of one.

import { formOf } from "../../shapes.js";
import { AggregateFields } from "../aggregate/fields.js";
import { boxWith, shapedArea, withAggregate } from "../plan.js";
import { NoiseFields } from "../track/fields.js";
import { rangeText } from "../words.js";

function rangeOf(before, { stream, report, where, box, shape, aggregate }) {
  const {
    area,
    target,
    within_s: _within,
    join,
    kind,
    compare: old,
    around,
    k,
    max_distance: _max,
    alpha,
    aggregate: _aggregate,
    ...kept
  } = before;
  const plan = withAggregate({ kind: "range", ...kept, stream, report, where }, aggregate);
  if (shape) return { ...plan, ...(shapedArea(before) && old ? { compare: old } : {}), area: shape };
  const compare = box ? boxWith(box, old) : old;
  if (compare) plan.compare = compare;
  const fixed = !join && !around && !formOf(area);
  const ownArea =
    fixed && area && JSON.stringify(area) !== JSON.stringify(old) && report === (before.report ?? "inside");
  return ownArea ? { ...plan, area } : plan;
}

export const range = {
  report: "inside",
  claims: () => true,
  makes: ({ noise }) => !noise,
  plan: rangeOf,
  words: rangeText,
  form: { parts: [AggregateFields, NoiseFields] },
};

export const rangeOutside = {
  report: "outside",
  claims: ({ report }) => report === "outside",
  makes: () => true,
  plan: rangeOf,
  words: rangeText,
  form: { parts: [AggregateFields], rectangles: true },
};
