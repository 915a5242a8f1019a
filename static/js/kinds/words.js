// Words that the plans of several kinds share. Pure except for the chosen units.

import { place, shapeText } from "../format.js";
import { filled, gettext } from "../i18n.js";

export const NEAR = gettext("within %(distance)s of %(partner)s");

const RECTANGLE_WORDS = { inside: gettext("inside a rectangle"), outside: gettext("outside a rectangle") };

/** Join what there is and where it is; the second text may be empty. */
export function joined(what, where) {
  return where ? filled(gettext("%(what)s %(where)s"), { what, where }) : what;
}

/** Return the focus of a query as text: the object's name, or the place. */
export function focusText(around, name) {
  return around.at ? place(...around.at) : (name ?? around.key);
}

/** Say what an area is: "inside a rectangle", "in a circle of 5 km". */
export function areaText(area) {
  return shapeText(area) || RECTANGLE_WORDS.inside;
}

/** Say what a range is: "inside a rectangle", "outside a rectangle", "in a circle of 5 km". */
export function rangeText(plan) {
  const shape = shapeText(plan?.area);
  return shape && !plan.compare ? shape : joined(RECTANGLE_WORDS[plan?.report ?? "inside"], shape);
}
