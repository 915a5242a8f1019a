// The queries that one click makes around an object or a place, and their names. Pure except for the chosen units.

import { count, length } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { units } from "../units.js";

export const STANDARD_K = 10;

/** The queries that one click makes around a focus `{stream, key}` or `{at}`: their name, and their plan. */
export const ABOUT = [
  {
    action: "watch",
    icon: "around",
    name: gettext("%(distance)s around %(name)s"),
    plan: (stream, focus) => ({ stream, kind: "range", around: { ...focus, radius: units().radiusM } }),
  },
  {
    action: "nearest",
    icon: "nearest",
    name: gettext("%(count)s nearest to %(name)s"),
    plan: (stream, focus) => ({ stream, kind: "knn", k: STANDARD_K, around: focus }),
  },
  {
    action: "count",
    icon: "count",
    name: gettext("Count %(distance)s around %(name)s"),
    plan: (stream, focus) => ({
      stream,
      kind: "range",
      around: { ...focus, radius: units().radiusM },
      aggregate: { function: "count" },
    }),
  },
];

/**
 * Return the name of such a query.
 *
 * @param {Record<string, any>} about one of `ABOUT`
 * @param {string} focus the name of its focus
 * @param {Record<string, any> | null} plan of the query; null if it is as one click makes it
 */
export function nameAbout({ name }, focus, plan = null) {
  const figures = { distance: length(plan?.around?.radius ?? units().radiusM), count: count(plan?.k ?? STANDARD_K) };
  return filled(name, { ...figures, name: focus })
    .slice(0, MOST_CHARACTERS)
    .trim();
}

/** Return the name of a query whose plan changes: one that was made of figures of the plan is made of the new ones. */
export function renamed(name, before, after) {
  const both = (figure) => Boolean(figure(before) && figure(after));
  if (!both((plan) => plan?.around?.radius) && !both((plan) => plan?.k)) return name;
  for (const about of ABOUT) {
    const [start, end] = nameAbout(about, MARK, before).split(MARK);
    const rest = name.slice(start.length, name.length - end.length);
    if (name === start + rest + end && rest) return nameAbout(about, rest, after);
  }
  return name;
}

const MARK = "\u0000"; // stands for the name of the focus

const MOST_CHARACTERS = 100;
