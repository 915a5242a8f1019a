// Nearest neighbours of a focus, which may move.

import { count, length, shapeText } from "../../format.js";
import { filled, gettext } from "../../i18n.js";
import { FocusFields } from "../focus-fields.js";
import { focused } from "../plan.js";
import { focusText, joined } from "../words.js";
import { NeighbourFields } from "./fields.js";

function nearestOf(before, { stream, where, around, k, max_distance: farthest }) {
  const plan = { ...focused(before), stream, kind: "knn", k, around, where };
  return farthest ? { ...plan, max_distance: farthest } : plan;
}

function nearestText({ k, max_distance: metres }, focus) {
  const words = metres
    ? gettext("%(count)s nearest to %(focus)s, at most %(distance)s away")
    : gettext("%(count)s nearest to %(focus)s");
  return filled(words, { count: count(k), focus, distance: metres ? length(metres) : "" });
}

export const nearest = {
  report: "nearest",
  ranked: true,
  claims: ({ kind }) => kind === "knn",
  makes: () => true,
  plan: nearestOf,
  words: (plan, _titleOf, focus) => joined(nearestText(plan, focusText(plan.around, focus)), shapeText(plan.area)),
  form: { parts: [FocusFields, NeighbourFields], focus: true },
};
