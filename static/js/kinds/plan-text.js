// Plans in words. Pure except for the chosen units.

import { label } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { inSentence } from "../objects/field-words.js";
import { aggregateText } from "./aggregate/words.js";
import { kindOf } from "./registry.js";
import { joined } from "./words.js";

/**
 * What a plan looks for: "inside", "within Forests", "within 10 km of MS Anna", "count inside".
 *
 * @param {(...values: any[]) => any} titleOf returns what a layer or query is called, given its source and name; of a "value" the text
 * @param {string} focus what the focal object is called, if that is known
 */
export function planText(plan, titleOf, focus) {
  const members = kindOf(plan).words(plan, titleOf, focus);
  if (!plan?.aggregate) return members;
  const figure = joined(aggregateText(plan.aggregate), members);
  const { group_by: groups } = plan.aggregate;
  return groups
    ? filled(gettext("%(what)s, by %(group)s"), { what: figure, group: inSentence(label(groups)) })
    : figure;
}
