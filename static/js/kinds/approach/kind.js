// Predicted entries: objects that will be inside an area soon.

import { filled, gettext, number } from "../../i18n.js";
import { formOf } from "../../shapes.js";
import { boxWith } from "../plan.js";
import { areaText } from "../words.js";
import { drawWays, waysAhead } from "./drawing.js";
import { ApproachFields } from "./fields.js";

function approachOf(_kept, { stream, where, box, shape, within }, { target, filters, emit }) {
  const area = shape ?? (box ? boxWith(box, formOf(target) ? null : target) : target);
  return {
    stream,
    kind: "approach",
    target: area,
    within_s: within,
    where,
    ...(filters ? { filters } : {}),
    ...(emit ? { emit } : {}),
  };
}

export const approach = {
  report: "approach",
  claims: ({ kind }) => kind === "approach",
  makes: () => true,
  plan: approachOf,
  words: ({ target, within_s: withinS }) =>
    filled(gettext("%(where)s within %(minutes)s min"), { where: areaText(target), minutes: number(withinS / 60, 1) }),
  form: { parts: [ApproachFields] },
  fieldOf: { within_s: "withinMin" },
  drawing: { find: ({ objects, queries }, visible) => waysAhead(objects, visible, queries), draw: drawWays },
};
