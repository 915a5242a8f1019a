// Aggregates in words. Pure.

import { label } from "../../format.js";
import { inSentence } from "../../objects/field-words.js";
import { filled, gettext, pgettext } from "../../i18n.js";

const FUNCTION_WORDS = {
  count: pgettext("figure", "count %(property)s"),
  min: gettext("smallest %(property)s"),
  max: gettext("largest %(property)s"),
  sum: gettext("sum of %(property)s"),
  avg: gettext("average %(property)s"),
};

/** What an aggregate computes: "count", "average speed", "largest latitude". */
export function aggregateText({ function: name, property, dimension }) {
  const of = dimension ?? (property && inSentence(label(property)));
  return filled(FUNCTION_WORDS[name] ?? `${name} %(property)s`, { property: of || "" }).trim();
}
