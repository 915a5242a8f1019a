// What a query of a sketch asks, in words. Pure.

import { inSentence } from "../../objects/field-words.js";
import { label } from "../../format.js";
import { filled, gettext, ngettext, number } from "../../i18n.js";
import { ofFeatures, statisticText } from "./statistics.js";

const EVERY = {
  hour: gettext("hour"),
  day: gettext("day"),
  week: gettext("week"),
  month: gettext("month"),
  year: gettext("year"),
};

/** Return what a plan asks: "mean of temp, histogram of wind in an area, in the last 2 h". */
export function sketchText(plan) {
  const asked = [...new Set(plan.ask.map(askText))].join(", ");
  const place = plan.polygon
    ? gettext("%(asked)s in a polygon")
    : plan.area
      ? gettext("%(asked)s in an area")
      : "%(asked)s";
  const text = [filled(place, { asked }), ...timesOf(plan.time ?? {})].join(", ");
  return plan.other ? filled(gettext("%(text)s; against another place or time"), { text }) : text;
}

function askText({ question, features = [], statistic, every, by = [] }) {
  const names = features.map((name) => inSentence(label(name)));
  const of = names.length > 3 ? filled(gettext("%(count)s features"), { count: names.length }) : names.join(", ");
  const what = (words) => (of ? ofFeatures(words, of) : words);
  if (question === "select") return of ? ofFeatures(gettext("statistics"), of) : gettext("statistics of all features");
  if (question === "series")
    return filled(gettext("%(what)s by %(every)s"), { what: what(gettext("course")), every: EVERY[every] ?? every });
  if (question === "cells") return filled(gettext("%(what)s by cell"), { what: what(statisticText(statistic)) });
  if (question === "contrast")
    return filled(gettext("contrast of the %(what)s"), { what: what(statisticText(statistic)) });
  if (question === "regression")
    return filled(gettext("%(feature)s by %(others)s"), {
      feature: names[0],
      others: by.map((name) => inSentence(label(name))).join(", "),
    });
  return of
    ? what(statisticText(question))
    : filled(gettext("%(what)s of elements"), { what: statisticText(question) });
}

function timesOf({ ranges, last_s: lastS, daily }) {
  const parts = [];
  if (ranges?.length === 1) parts.push(rangeText(ranges[0]));
  if (ranges?.length > 1) parts.push(filled(gettext("in %(count)s ranges of time"), { count: ranges.length }));
  if (lastS) parts.push(lastText(lastS));
  if (daily) parts.push(filled(gettext("from %(from)s to %(to)s daily"), daily));
  return parts;
}

function rangeText(range) {
  const [from, to] = [range.from, range.to].map((text) => text && dayOf(text));
  if (from && to) return filled(gettext("from %(from)s until %(to)s"), { from, to });
  return from ? filled(gettext("from %(from)s"), { from }) : filled(gettext("until %(to)s"), { to });
}

function dayOf(text) {
  return /T00:00(:00)?/.test(text) ? text.slice(0, 10) : text.slice(0, 16).replace("T", " ");
}

function lastText(seconds) {
  const days = seconds / 86_400;
  if (Number.isInteger(days) && days > 0)
    return filled(ngettext("in the last %(count)s day", "in the last %(count)s days", days), {
      count: number(days, 1),
    });
  /** @type {[string, number][]} */
  const lengths = [
    ["h", 3600],
    ["min", 60],
  ];
  const [unit, each] = lengths.find(([, length]) => seconds >= length && seconds % length === 0) ?? ["s", 1];
  return filled(gettext("in the last %(duration)s"), { duration: `${number(seconds / each, 1)} ${unit}` });
}
