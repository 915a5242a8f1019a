// Rules in words: one sentence that says when there is an alarm. Pure.

const DAYS = { mon: "Monday", tue: "Tuesday", wed: "Wednesday", thu: "Thursday", fri: "Friday", sat: "Saturday", sun: "Sunday" };

/** Return a number of seconds in words: "90 s", "5 min", "2 h". */
export function duration(seconds) {
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600} h`;
  return seconds >= 60 && seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

/** Return a condition in words: `nameOf(number)` names a query. */
export function conditionText(condition, nameOf) {
  const [[operator, value]] = Object.entries(condition);
  if (operator === "query") return `in ${nameOf(value)}`;
  if (operator === "not") return "query" in value ? `not in ${nameOf(value.query)}` : `not (${conditionText(value, nameOf)})`;
  const parts = value.map((part) => ("all" in part || "any" in part ? `(${conditionText(part, nameOf)})` : conditionText(part, nameOf)));
  return parts.join(operator === "all" ? " and " : " or ");
}

/** Return what a rule says, as a short text for lists. */
export function ruleText(plan, nameOf) {
  const { rate } = plan;
  const often = rate ? `, more than ${rate.more_than} times in ${duration(rate.within_s)}` : plan.for_s ? ` for ${duration(plan.for_s)}` : "";
  return `alarm if ${conditionText(plan.when, nameOf)}${often}`;
}

/** Return the whole rule as sentences, as the form shows it before it is saved. */
export function ruleSentences(plan, nameOf) {
  const { rate, schedule } = plan;
  const what = conditionText(plan.when, nameOf);
  const begins = rate
    ? `An alarm begins when an object has come to be ${what} more than ${rate.more_than} times within ${duration(rate.within_s)}.`
    : `An alarm begins ${plan.for_s ? `when an object has been ${what} for ${duration(plan.for_s)} without a break` : `as soon as an object is ${what}`}.`;
  const ends = rate ? "It lasts until that was less often." : `It lasts until the object is no longer ${plan.until ? conditionText(plan.until, nameOf) : "so"}.`;
  const again = plan.rearm_s ? ` Then the same object has no other alarm for ${duration(plan.rearm_s)}.` : "";
  const when = schedule ? ` The rule counts ${scheduleText(schedule)}.` : "";
  return `${begins} ${ends}${again}${when}`;
}

function scheduleText({ days, from, to, time_zone: zone }) {
  const on = !days || days.length === 7 ? "every day" : `on ${days.map((day) => DAYS[day]).join(", ")}`;
  return `${on} from ${from} to ${to}${to <= from ? " of the next day" : ""} (${zone})`;
}
