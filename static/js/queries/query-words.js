// What a query's card says of a query in words. Pure.

import { shownFilter } from "./filter-units.js";
import { count, figureText, value } from "../format.js";
import { filled, gettext, ngettext, number as written } from "../i18n.js";
import { measureOf } from "../quantities.js";
import { headline } from "../kinds/sketch/bounds.js";
import { sharedText } from "../teams/rights.js";

const INCIDENTS = {
  info: gettext("info incidents"),
  warning: gettext("warning incidents"),
  critical: gettext("critical incidents"),
};

/** Say what a query asks, what its incidents are, and whose it is. */
export function aboutText(store, query, stream, asked) {
  const where = query.plan?.where;
  const words = where ? gettext("%(stream)s, %(asked)s, where %(filter)s") : gettext("%(stream)s, %(asked)s");
  const team = query.team ? sharedText(store, { team: query.team }) : "";
  return [
    filled(words, { stream, asked, filter: where && shownFilter(where) }),
    INCIDENTS[query.severity],
    ownerText(query),
    team,
  ]
    .filter(Boolean)
    .join(" \u00b7 ");
}

/** Return a limit of what a plan computes as text, with a unit if that has one. */
export function limitText(plan, limit) {
  const { property = "" } = plan?.aggregate ?? {};
  return measureOf(property) ? value(property, limit) : written(limit, 6);
}

/** Name a query by its number. */
export function numbered(query) {
  return filled(gettext("query %(number)s"), { number: query });
}

function ownerText({ example, mine, owner, shared }) {
  if (example) return gettext("example");
  if (mine === false) return filled(gettext("by %(owner)s"), { owner });
  return shared ? gettext("shared") : "";
}

/**
 * Return what the answer of a query comes to, as `{text, title, raised}`: the number of objects in it, of pairs that were told, or
 * of encounters that last; of an aggregate its figure, or with groups their number; of a sketch its first value with its bound.
 * `text` is empty without an answer; `raised` says whether a threshold is crossed.
 */
export function answerWords(store, { query, plan, status }) {
  if (store.awaited.has(query)) return { text: "…", title: gettext("is being computed"), raised: false };
  const has = status === "running" && store.answered(query);
  const [document] = store.sketched.get(query) ?? [];
  if (store.sketched.has(query)) {
    const { text, title } = document ? headline(document) : { text: "", title: "" };
    return { text: has ? text : "", title, raised: false };
  }
  const { number, title } = store.figures.has(query)
    ? figureOf(store.figures.get(query), plan)
    : numberOf(store, query);
  return { text: has ? number : "", title, raised: Boolean(store.figures.get(query)?.raisedBy("").length) };
}

function figureOf(figures, { aggregate }) {
  if (aggregate?.group_by) return { number: count(figures.groups.size), title: gettext("groups") };
  const number = figureText(figures.groups.get("")?.value, aggregate);
  return { number, title: filled(gettext("%(count)s now"), { count: number }) };
}

function numberOf(store, query) {
  const [pairs, told, lasting] = [store.pairCount(query), store.toldCount(query), store.lastingCount(query)];
  if (told !== null) return { number: count(told), title: gettext("pairs told since this page shows the query") };
  if (lasting !== null) return { number: count(lasting), title: gettext("encounters that last") };
  const title = pairs > 0 ? inPairs(pairs) : gettext("objects in the answer");
  return { number: count(store.count(query)), title };
}

/** Say of what a number is that of the answer of a join. */
function inPairs(number) {
  return filled(
    ngettext("objects in the answer, in %(count)s pair", "objects in the answer, in %(count)s pairs", number),
    { count: count(number) },
  );
}

/** Say that an answer is empty. */
export function emptyText(stream, told, lasting) {
  if (lasting !== null) return gettext("No encounter lasts now.");
  return told === null
    ? filled(gettext("No object of %(stream)s matches now."), { stream })
    : gettext("No pair has been told yet.");
}
