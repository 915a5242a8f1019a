// The plan of a rule from the fields of its form, and back. Pure.

import { gettext } from "../i18n.js";

const MINUTE_S = 60;
const DAY_NAMES = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/** Minutes in seconds, to a thousandth: 0.03 min is 1.8 s, and not a little less. */
const secondsOf = (minutes) => Math.round(minutes * MINUTE_S * 1000) / 1000;

/**
 * Return the plan of a rule.
 *
 * @param {object} fields `stream`; `query`, the watched one; `also` and `unless`, numbers of further queries, or ""; `until`, the
 *   number of a query that must be left, or ""; `often`, whether the rule counts how often; `forMin`, `moreThan`, `withinMin`,
 *   `rearmMin`; `scheduled`, `days`, `from`, `to`, `timeZone`; `whole`, whether it is about
 *   the whole answer: then `limit` ("none", "fewer", "more") and `objects`
 */
export function planOfRule(fields) {
  if (fields.whole) return { stream: fields.stream, kind: "rule", when: { count: countOf(fields) }, for_s: secondsOf(fields.forMin || 0), ...timesOf(fields) };
  const parts = [{ query: fields.query }];
  if (fields.also) parts.push({ query: fields.also });
  if (fields.unless) parts.push({ not: { query: fields.unless } });
  const plan = { stream: fields.stream, kind: "rule", when: parts.length > 1 ? { all: parts } : parts[0] };
  if (fields.often) plan.rate = { more_than: fields.moreThan, within_s: secondsOf(fields.withinMin) };
  else {
    plan.for_s = secondsOf(fields.forMin || 0);
    if (fields.until) plan.until = { query: fields.until };
  }
  return { ...plan, ...timesOf(fields) };
}

function countOf({ query, limit, objects }) {
  if (limit === "none") return { query, below: 1 };
  return limit === "fewer" ? { query, below: objects } : { query, above: objects };
}

function timesOf(fields) {
  const times = { rearm_s: secondsOf(fields.rearmMin || 0) };
  if (fields.scheduled) times.schedule = { days: fields.days, from: fields.from, to: fields.to, time_zone: fields.timeZone };
  return times;
}

/** Return the fields that show a plan; null if they cannot show it, so that it has to be edited as JSON. */
export function fieldsOfRule(plan) {
  const whole = plan.when.count;
  if (whole && (plan.until || plan.rate)) return null;
  const parts = whole ? [{ query: whole.query }] : (plan.when.all ?? [plan.when]);
  const wanted = parts.filter((part) => part.query).map((part) => part.query);
  const unwanted = parts.filter((part) => part.not?.query).map((part) => part.not.query);
  const shown = wanted.length + unwanted.length === parts.length && wanted.length >= 1 && wanted.length <= 2 && unwanted.length <= 1;
  if (!shown || (plan.until && !plan.until.query)) return null;
  return {
    stream: plan.stream,
    whole: Boolean(whole),
    ...limitOf(whole ?? { below: 1 }),
    query: wanted[0],
    also: wanted[1] ?? "",
    unless: unwanted[0] ?? "",
    until: plan.until?.query ?? "",
    often: Boolean(plan.rate),
    forMin: (plan.for_s ?? 0) / MINUTE_S,
    moreThan: plan.rate?.more_than ?? 5,
    withinMin: (plan.rate?.within_s ?? 600) / MINUTE_S,
    rearmMin: (plan.rearm_s ?? 0) / MINUTE_S,
    scheduled: Boolean(plan.schedule),
    days: plan.schedule?.days ?? DAY_NAMES,
    from: plan.schedule?.from ?? "08:00",
    to: plan.schedule?.to ?? "18:00",
    timeZone: plan.schedule?.time_zone ?? "",
  };
}

function limitOf({ below, above }) {
  if (below === 1) return { limit: "none", objects: 20 };
  return Number.isFinite(below) ? { limit: "fewer", objects: below } : { limit: "more", objects: above };
}

/** Return what is wrong with fields, by the name of the field. */
export function errorsOfRule(name, fields) {
  const errors = {};
  if (!name) errors.name = gettext("Type a name for the rule.");
  if (fields.whole && fields.limit !== "none" && !(Number.isInteger(fields.objects) && fields.objects >= 0)) errors.objects = gettext("The number of objects must be a whole number of at least 0.");
  if (fields.often && !(Number.isInteger(fields.moreThan) && fields.moreThan >= 1)) errors.moreThan = gettext("More than must be a whole number of at least 1.");
  if (fields.often && !(fields.withinMin > 0)) errors.moreThan = gettext("The time must be longer than 0 minutes.");
  if (!fields.often && !(fields.forMin >= 0)) errors.forMin = gettext("For must be 0 or more minutes.");
  if (!(fields.rearmMin >= 0)) errors.rearmMin = gettext("Not again must be 0 or more minutes.");
  if (fields.scheduled && fields.days.length === 0) errors.days = gettext("Choose at least one day.");
  if (fields.scheduled && !(fields.from && fields.to && fields.from !== fields.to)) errors.days = gettext("From and to must be two different times of day.");
  return errors;
}
