// The plan of a rule from the fields of its form, and back. Pure.

import { gettext } from "../../i18n.js";

const MINUTE_S = 60;
const MOST_EXPECTED = 1000;
const DAY_NAMES = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/** Minutes in seconds, to a thousandth: 0.03 min is 1.8 s, and not a little less. */
const secondsOf = (minutes) => Math.round(minutes * MINUTE_S * 1000) / 1000;

/**
 * Return the plan of a rule.
 *
 * @param {Record<string, any>} fields `stream`; `query`, the watched one; `also` and `unless`, numbers of further queries, or ""; `until`, the
 *   number of a query that must be left, or ""; `often`, whether the rule counts how often; `forMin`, `moreThan`, `withinMin`,
 *   `rearmMin`; `scheduled`, `days`, `from`, `to`, `timeZone`; `whole`, whether it is about
 *   the whole answer: then `limit` ("none", "fewer", "more") and `objects`; `valued`, whether it is about the value of an
 *   aggregate: then `side` ("below", "above"), `bound` and `group`, or ""; for both, `back`, the second bound up to which the
 *   alarm lasts, or NaN; `silent`, whether it is about objects that fall silent: then `expected`, the keys of those that count
 *   also if they were never heard
 */
export function planOfRule(fields) {
  if (fields.silent) {
    const expected = fields.expected ?? [];
    const silent = { query: fields.query, ...(expected.length > 0 && { expected }) };
    return {
      stream: fields.stream,
      kind: "rule",
      when: { silent },
      for_s: secondsOf(fields.forMin),
      ...timesOf(fields),
    };
  }
  if (isOfNumber(fields)) {
    const when = termOf(fields, limitOfFields(fields));
    const plan = { stream: fields.stream, kind: "rule", when };
    if (fields.often) plan.rate = rateOf(fields);
    else {
      plan.for_s = secondsOf(fields.forMin || 0);
      const [[side]] = Object.entries(limitOfFields(fields));
      if (Number.isFinite(fields.back)) plan.until = termOf(fields, { [side]: fields.back });
    }
    return { ...plan, ...timesOf(fields) };
  }
  /** @type {Record<string, any>[]} */
  const parts = [{ query: fields.query }];
  if (fields.also) parts.push({ query: fields.also });
  if (fields.unless) parts.push({ not: { query: fields.unless } });
  const plan = { stream: fields.stream, kind: "rule", when: parts.length > 1 ? { all: parts } : parts[0] };
  if (fields.often) plan.rate = rateOf(fields);
  else {
    plan.for_s = secondsOf(fields.forMin || 0);
    if (fields.until) plan.until = { query: fields.until };
  }
  return { ...plan, ...timesOf(fields) };
}

/** Whether a rule is about a number of a whole answer, and not about each object. */
const isOfNumber = (/** @type {Record<string, any>} */ { whole, valued }) => Boolean(whole || valued);

const rateOf = (fields) => ({ more_than: fields.moreThan, within_s: secondsOf(fields.withinMin) });

function termOf(/** @type {Record<string, any>} */ { query, valued, group }, limit) {
  return valued ? { value: { query, ...(group && { group }), ...limit } } : { count: { query, ...limit } };
}

function limitOfFields(/** @type {Record<string, any>} */ { valued, side, bound, limit, objects }) {
  if (valued) return { [side]: bound };
  if (limit === "none") return { below: 1 };
  return limit === "fewer" ? { below: objects } : { above: objects };
}

function timesOf(fields) {
  const times = { rearm_s: secondsOf(fields.rearmMin || 0) };
  if (fields.scheduled)
    times.schedule = { days: fields.days, from: fields.from, to: fields.to, time_zone: fields.timeZone };
  return times;
}

/** Return the fields that show a plan; null if they cannot show it, so that it has to be edited as JSON. */
export function fieldsOfRule(plan) {
  const term = plan.when.count ?? plan.when.value;
  const back = plan.until && term && backOf(plan);
  if (plan.until && term && back === null) return null;
  const parts = partsOf(plan.when);
  const wanted = parts.filter((part) => part.query).map((part) => part.query);
  const unwanted = parts.filter((part) => part.not?.query).map((part) => part.not.query);
  const shown =
    wanted.length + unwanted.length === parts.length &&
    wanted.length >= 1 &&
    wanted.length <= 2 &&
    unwanted.length <= 1;
  if (!shown || (plan.until && !term && !plan.until.query)) return null;
  return {
    stream: plan.stream,
    whole: Boolean(plan.when.count),
    ...limitOf(plan.when.count ?? { below: 1 }),
    valued: Boolean(plan.when.value),
    ...boundOf(plan.when.value ?? {}),
    back: back || back === 0 ? back : NaN,
    ...silenceOf(plan.when),
    query: wanted[0],
    also: wanted[1] ?? "",
    unless: unwanted[0] ?? "",
    until: (!term && plan.until?.query) || "",
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

/** Return the conditions on each object that a condition consists of; of one about something else, that about its query. */
function partsOf(when) {
  const term = when.count ?? when.value ?? when.silent;
  return term ? [{ query: term.query }] : (when.all ?? [when]);
}

const silenceOf = ({ silent }) => ({ silent: Boolean(silent), expected: silent?.expected ?? [] });

function limitOf({ below, above }) {
  if (below === 1) return { limit: "none", objects: 20 };
  return Number.isFinite(below) ? { limit: "fewer", objects: below } : { limit: "more", objects: above };
}

function boundOf({ below, above, group }) {
  const side = Number.isFinite(above) ? "above" : "below";
  return { side, bound: (side === "above" ? above : below) ?? NaN, group: group ?? "" };
}

/** Return the second bound of a plan about a number; null if it is of another number, or on another side. */
function backOf({ when, until }) {
  const [[kind, term]] = Object.entries(when);
  const other = until[kind];
  const side = Number.isFinite(term.above) ? "above" : "below";
  const same =
    other && other.query === term.query && (other.group ?? "") === (term.group ?? "") && Number.isFinite(other[side]);
  return same ? other[side] : null;
}

/** Return what is wrong with fields, by the name of the field. */
export function errorsOfRule(name, fields) {
  const errors = {};
  if (!name) errors.name = gettext("Type a name for the rule.");
  if (fields.whole && fields.limit !== "none" && !(Number.isInteger(fields.objects) && fields.objects >= 0))
    errors.objects = gettext("The number of objects must be a whole number of at least 0.");
  if (fields.valued && !Number.isFinite(fields.bound)) errors.bound = gettext("Type the value that must be passed.");
  if (fields.valued && fields.grouped && !fields.group)
    errors.bound = gettext("Type the group whose value is watched.");
  if (isOfNumber(fields) && !fields.often && !errors.bound && !errors.objects && Number.isFinite(fields.back)) {
    const [[side, limit]] = Object.entries(limitOfFields(fields));
    if (side === "below" && !(fields.back >= limit))
      errors.back = gettext("The alarm must end at a number that is not below the first one.");
    if (side === "above" && !(fields.back <= limit))
      errors.back = gettext("The alarm must end at a number that is not above the first one.");
  }
  if (fields.silent && fields.expected.length > MOST_EXPECTED)
    errors.expected = gettext("At most 1,000 objects can be expected.");
  if (fields.often && !(Number.isInteger(fields.moreThan) && fields.moreThan >= 1))
    errors.moreThan = gettext("More than must be a whole number of at least 1.");
  if (fields.often && !(fields.withinMin > 0)) errors.moreThan = gettext("The time must be longer than 0 minutes.");
  if (fields.silent && !(fields.forMin > 0)) errors.forMin = gettext("Type for how many minutes an object is silent.");
  else if (!fields.often && !(fields.forMin >= 0)) errors.forMin = gettext("For must be 0 or more minutes.");
  if (!(fields.rearmMin >= 0)) errors.rearmMin = gettext("Not again must be 0 or more minutes.");
  if (fields.scheduled && fields.days.length === 0) errors.days = gettext("Choose at least one day.");
  if (fields.scheduled && !(fields.from && fields.to && fields.from !== fields.to))
    errors.days = gettext("From and to must be two different times of day.");
  return errors;
}
