// Ranges around a focus, which may move.

import { length, shapeText } from "../../format.js";
import { filled, gettext, pgettext } from "../../i18n.js";
import { AggregateFields } from "../aggregate/fields.js";
import { FocusFields } from "../focus-fields.js";
import { focused, withAggregate } from "../plan.js";
import { focusText, joined, NEAR } from "../words.js";
import { ShapeFields } from "./fields.js";

function aroundOf(before, { stream, where, around, aggregate }) {
  const { alpha, ...kept } = focused(before);
  return withAggregate({ ...kept, stream, kind: "range", around, where }, aggregate);
}

function aroundText({ radius, half_widths: widths }, focus) {
  if (radius) return filled(NEAR, { distance: length(radius), partner: focus });
  if (!widths) return filled(gettext("in a polygon around %(focus)s"), { focus });
  const sides = [0, 1]
    .map((axis) => (widths[axis] ? length(2 * widths[axis]) : pgettext("length", "any")))
    .join(" \u00d7 ");
  return filled(gettext("in %(sides)s around %(focus)s"), { sides, focus });
}

export const movingRange = {
  report: "around",
  claims: ({ around }) => Boolean(around),
  makes: () => true,
  plan: aroundOf,
  words: ({ around, area }, _titleOf, focus) => joined(aroundText(around, focusText(around, focus)), shapeText(area)),
  form: { parts: [FocusFields, ShapeFields, AggregateFields], focus: true },
};
