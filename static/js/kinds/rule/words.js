// Rules in words: one sentence that says when there is an alarm. Pure.

import { filled, gettext, number } from "../../i18n.js";

const MOST_KEYS = 5;
const DAYS = {
  mon: gettext("Monday"),
  tue: gettext("Tuesday"),
  wed: gettext("Wednesday"),
  thu: gettext("Thursday"),
  fri: gettext("Friday"),
  sat: gettext("Saturday"),
  sun: gettext("Sunday"),
};

/** Return a number of seconds in words: "90 s", "5 min", "2 h". */
export function duration(seconds) {
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600} h`;
  return seconds >= 60 && seconds % 60 === 0 ? `${seconds / 60} min` : `${number(seconds, 3)} s`;
}

const PLAIN = (_query, limit) => number(limit, 6);

/** Return a condition in words: `nameOf(number)` names a query, and `limitOf(query, limit)` writes a value that it computes. */
export function conditionText(condition, nameOf, limitOf = PLAIN) {
  const [[operator, value]] = Object.entries(condition);
  if (operator === "query") return filled(gettext("in %(query)s"), { query: nameOf(value) });
  if (operator === "silent") return silentText(value, nameOf(value.query));
  if (operator === "count") return countText(value, nameOf(value.query));
  if (operator === "value") return valueText(value, nameOf(value.query), limitOf);
  if (operator === "not" && "query" in value)
    return filled(gettext("not in %(query)s"), { query: nameOf(value.query) });
  if (operator === "not")
    return filled(gettext("not (%(condition)s)"), { condition: conditionText(value, nameOf, limitOf) });
  const parts = value.map((part) =>
    "all" in part || "any" in part ? `(${conditionText(part, nameOf, limitOf)})` : conditionText(part, nameOf, limitOf),
  );
  const joined = operator === "all" ? gettext("%(one)s and %(other)s") : gettext("%(one)s or %(other)s");
  return parts.reduce((one, other) => filled(joined, { one, other }));
}

function silentText({ expected }, query) {
  return expected?.length
    ? filled(gettext("silent after a report in %(query)s, or expected: %(keys)s"), { query, keys: keysText(expected) })
    : filled(gettext("silent after a report in %(query)s"), { query });
}

function countText({ below, above }, query) {
  if (below === 1) return filled(gettext("nothing in %(query)s"), { query });
  if (Number.isFinite(below)) return filled(gettext("fewer than %(count)s in %(query)s"), { count: below, query });
  return filled(gettext("more than %(count)s in %(query)s"), { count: above, query });
}

function valueText({ query: watched, below, above, group }, query, limitOf) {
  const words = {
    below: group ? gettext("%(query)s for %(group)s below %(limit)s") : gettext("%(query)s below %(limit)s"),
    above: group ? gettext("%(query)s for %(group)s above %(limit)s") : gettext("%(query)s above %(limit)s"),
  };
  const side = Number.isFinite(below) ? "below" : "above";
  return filled(words[side], { query, group, limit: limitOf(watched, below ?? above) });
}

/** Tell whether a condition is about values of aggregates, perhaps among others. */
function isValued(condition) {
  const [[operator, value]] = Object.entries(condition);
  if (operator === "not") return isValued(value);
  return operator === "value" || (Array.isArray(value) && value.some(isValued));
}

/**
 * Say what happened, given the properties of an alarm about whole answers: "Mean speed 0.8, below 1 for 10 min".
 *
 * Without the plan, or for a condition of several numbers, only the numbers are told; the text is empty if there are none.
 */
export function alarmText(plan, figures, nameOf) {
  const numbers = Object.entries(figures ?? {}).filter(
    ([name, value]) => /^(count|value)( of \d+)?( \(.*\))?$/.test(name) && Number.isFinite(value),
  );
  const [[operator, term] = []] = Object.entries(plan?.when ?? {});
  if (operator === "silent")
    return filled(gettext("nothing is heard of the stream %(stream)s"), { stream: plan.stream });
  const known = numbers.find(([name]) => name === operator);
  if (!known) return numbers.map(([name, value]) => namedText(name, value, nameOf)).join(", ");
  const side = Number.isFinite(term.below) ? gettext("below %(limit)s") : gettext("above %(limit)s");
  const limit = filled(side, { limit: number(term.below ?? term.above, 6) });
  const now =
    operator === "count"
      ? filled(gettext("%(query)s: %(number)s objects"), { query: nameOf(term.query), number: number(known[1], 0) })
      : figure(term, known[1], nameOf);
  const long = plan.for_s
    ? filled(gettext("%(what)s for %(duration)s"), { what: limit, duration: duration(plan.for_s) })
    : limit;
  return `${now}, ${long}`;
}

function figure({ query, group }, value, nameOf) {
  const name = group ? `${nameOf(query)} (${group})` : nameOf(query);
  return `${name}: ${number(value, 3)}`;
}

function namedText(name, value, nameOf) {
  const [, , query, group] = /^(count|value)(?: of (\d+))?(?: \((.*)\))?$/.exec(name) ?? [];
  return query ? figure({ query: Number(query), group }, value, nameOf) : number(value, 3);
}

/** Tell whether a condition is about whole answers, and not about objects. */
function isWhole(condition) {
  const [[operator, value]] = Object.entries(condition);
  if (operator === "not") return isWhole(value);
  return operator === "count" || operator === "value" || (Array.isArray(value) && value.some(isWhole));
}

/** Return what a rule says, as a short text for lists. */
export function ruleText(plan, nameOf, limitOf = PLAIN) {
  const { rate } = plan;
  const what = conditionText(plan.when, nameOf, limitOf);
  if (rate)
    return filled(gettext("alarm if %(what)s, more than %(count)s times in %(duration)s"), {
      what,
      count: rate.more_than,
      duration: duration(rate.within_s),
    });
  return plan.for_s
    ? filled(gettext("alarm if %(what)s for %(duration)s"), { what, duration: duration(plan.for_s) })
    : filled(gettext("alarm if %(what)s"), { what });
}

/** Return the whole rule as sentences, as the form shows it before it is saved. */
export function ruleSentences(plan, nameOf, limitOf = PLAIN) {
  const { schedule, rearm_s: rearmS } = plan;
  const rest = isWhole(plan.when)
    ? gettext("Then there is no other alarm for %(duration)s.")
    : gettext("Then the same object has no other alarm for %(duration)s.");
  const again = rearmS ? filled(rest, { duration: duration(rearmS) }) : "";
  return [
    beginText(plan, nameOf, limitOf),
    endText(plan, nameOf, limitOf),
    again,
    schedule ? scheduleText(schedule) : "",
  ]
    .filter(Boolean)
    .join(" ");
}

function beginText({ when, rate, for_s: forS }, nameOf, limitOf) {
  const what = conditionText(when, nameOf, limitOf);
  if (when.silent) return silenceText(when.silent, duration(forS), nameOf(when.silent.query));
  if (isValued(when)) return valuedText({ what, rate, forS });
  if (isWhole(when)) return wholeText({ what, rate, forS });
  if (rate) {
    const words = gettext(
      "An alarm begins when an object has come to be %(what)s more than %(count)s times within %(duration)s.",
    );
    return filled(words, { what, count: rate.more_than, duration: duration(rate.within_s) });
  }
  const long = gettext("An alarm begins when an object has been %(what)s for %(duration)s without a break.");
  return forS
    ? filled(long, { what, duration: duration(forS) })
    : filled(gettext("An alarm begins as soon as an object is %(what)s."), { what });
}

/** Return the first of some keys, for a sentence. */
function keysText(keys) {
  return keys.length > MOST_KEYS ? `${keys.slice(0, MOST_KEYS).join(", ")}, …` : keys.join(", ");
}

function silenceText({ expected }, long, query) {
  const begins = filled(
    gettext("An alarm begins when an object whose last report was in %(query)s has not reported for %(long)s."),
    { query, long },
  );
  const also = expected?.length
    ? filled(gettext("It also begins for these, even if they were never heard: %(keys)s."), {
        keys: keysText(expected),
      })
    : "";
  const outage = gettext("If nothing is heard of the whole stream, that is one alarm.");
  return [begins, also, outage].filter(Boolean).join(" ");
}

function wholeText(/** @type {Record<string, any>} */ { what, rate, forS }) {
  if (rate) {
    const words = gettext(
      "An alarm begins when it has come to be so more than %(count)s times within %(duration)s: %(what)s.",
    );
    return filled(words, { what, count: rate.more_than, duration: duration(rate.within_s) });
  }
  const long = gettext("An alarm begins when there has been %(what)s for %(duration)s without a break.");
  return forS
    ? filled(long, { what, duration: duration(forS) })
    : filled(gettext("An alarm begins as soon as there is %(what)s."), { what });
}

function valuedText({ what, rate, forS }) {
  if (rate) return wholeText({ what, rate });
  const long = gettext("An alarm begins when it has been so for %(duration)s without a break: %(what)s.");
  return forS
    ? filled(long, { what, duration: duration(forS) })
    : filled(gettext("An alarm begins as soon as it is so: %(what)s."), { what });
}

function endText({ when, rate, until }, nameOf, limitOf) {
  if (when.silent) return gettext("It lasts until the object reports again.");
  if (rate) return gettext("It lasts until that was less often.");
  if (until && isValued(until))
    return filled(gettext("It ends when this holds no more: %(what)s."), {
      what: conditionText(until, nameOf, limitOf),
    });
  if (isWhole(when))
    return until
      ? filled(gettext("It lasts until there is no longer %(what)s."), { what: conditionText(until, nameOf, limitOf) })
      : gettext("It ends when that holds no more.");
  if (!until) return gettext("It ends when that holds no more of the object.");
  return filled(gettext("It lasts until the object is no longer %(what)s."), {
    what: conditionText(until, nameOf, limitOf),
  });
}

function scheduleText({ days, from, to, time_zone: zone }) {
  const daily = !days || days.length === 7;
  const sameDay = daily
    ? gettext("The rule counts every day from %(from)s to %(to)s (%(zone)s).")
    : gettext("The rule counts on %(days)s from %(from)s to %(to)s (%(zone)s).");
  const nextDay = daily
    ? gettext("The rule counts every day from %(from)s to %(to)s of the next day (%(zone)s).")
    : gettext("The rule counts on %(days)s from %(from)s to %(to)s of the next day (%(zone)s).");
  return filled(to <= from ? nextDay : sameDay, { days: days?.map((day) => DAYS[day]).join(", "), from, to, zone });
}
