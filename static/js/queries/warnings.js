// What did not work although a query ran: the newest of each kind, how often it happened, and when last. Pure.

import { count, localTime } from "../format.js";
import { filled, ngettext } from "../i18n.js";

const OF_REPORTS = ["late", "doubted"];

/** Return the texts of a query's warnings, the newest kind first. */
export function warningTexts({ warnings }, nowMs, timeZone) {
  const [today] = localTime(nowMs, timeZone).split(" ");
  const time = (at) => localTime(Date.parse(at), timeZone).replace(`${today} `, "");
  return (warnings ?? []).map((told) =>
    filled(wordsOf(told), { text: told.warning, count: count(told.count), time: time(told.last) }),
  );
}

function wordsOf({ kind, count: times }) {
  return OF_REPORTS.includes(kind)
    ? ngettext("%(text)s (%(count)s report, at %(time)s)", "%(text)s (%(count)s reports, the last at %(time)s)", times)
    : ngettext("%(text)s (once, at %(time)s)", "%(text)s (%(count)s times, last at %(time)s)", times);
}
