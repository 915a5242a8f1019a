// What a back-test asks and says, as texts: pure.

import { count, utcTime } from "../format.js";
import { filled, gettext, ngettext, number } from "../i18n.js";

export const SPANS = [
  ["3600", gettext("the last hour")],
  ["86400", gettext("the last day")],
  ["604800", gettext("the last week")],
];

/** The message that asks what a plan would have told in the last so many seconds. */
export function questionOf(plan, lastS, nowMs) {
  return { type: "backtest.start", plan, span: { from: nowMs / 1000 - Number(lastS) } };
}

/** How a back-test goes, in words. */
export function progressText({ share, at_us: atUs, found }, ruled) {
  const alarms = () =>
    ngettext(
      "%(share)s, up to %(time)s: %(count)s alarm so far",
      "%(share)s, up to %(time)s: %(count)s alarms so far",
      found,
    );
  const entries = () =>
    ngettext(
      "%(share)s, up to %(time)s: %(count)s entry so far",
      "%(share)s, up to %(time)s: %(count)s entries so far",
      found,
    );
  return filled(ruled ? alarms() : entries(), {
    share: `${Math.floor(100 * share)} %`,
    time: utcTime(atUs / 1000),
    count: count(found),
  });
}

/** What a back-test has found, in words. */
export function resultText({ summary, stopped, at_us: atUs, stored }, ruled, spanText) {
  const { entered, left, total } = summary;
  const until = stopped
    ? filled(gettext("It stopped at %(time)s, %(why)s."), { time: utcTime(atUs / 1000), why: stopped })
    : "";
  return [stored ? foundText({ entered, left, total }, ruled, spanText) : nothingText(spanText), until]
    .filter(Boolean)
    .join(" ");
}

function nothingText(span) {
  return filled(gettext("Nothing was stored in %(span)s, so there is nothing to try this on."), { span });
}

function foundText({ entered, left, total }, ruled, span) {
  if (ruled)
    return filled(
      ngettext("Would have fired %(count)s time in %(span)s.", "Would have fired %(count)s times in %(span)s.", total),
      { count: count(total), span },
    );
  const before = total - entered;
  const counts = { span, entered: times(entered), left: times(left), before: count(before) };
  if (!before) return filled(gettext("In %(span)s, objects would have entered %(entered)s and left %(left)s."), counts);
  return filled(
    ngettext(
      "In %(span)s, objects would have entered %(entered)s and left %(left)s; %(before)s was inside at the beginning.",
      "In %(span)s, objects would have entered %(entered)s and left %(left)s; %(before)s were inside at the beginning.",
      before,
    ),
    counts,
  );
}

/** One row of the list: what was in the answer, named as `naming` says (`namingOf`), and from when to when. */
export function rowText({ key, partner, start_us: startUs, end_us: endUs }, naming) {
  const begin = utcTime(startUs / 1000);
  const end =
    endUs === null
      ? gettext("had not ended")
      : filled(gettext("for %(duration)s"), { duration: minutes(endUs - startUs) });
  const object = naming.object(key);
  const both = () => filled(gettext("%(object)s with %(partner)s"), { object, partner: naming.partner(partner) });
  return [partner ? both() : object, `${begin}, ${end}`];
}

/** The place of a row as [longitude, latitude]; null if it has none. */
export function placeOfRow({ bounds }) {
  const n = bounds.length / 2;
  const place = [0, 1].map((axis) => (bounds[axis] + bounds[n + axis]) / 2);
  return [0, 1, n, n + 1].every((at) => Number.isFinite(bounds[at])) ? place : null;
}

function minutes(us) {
  const s = Math.round(us / 1e6);
  if (s < 60) return `${s} s`;
  return s < 5400 ? `${Math.round(s / 60)} min` : `${number(s / 3600, 1)} h`;
}

function times(many) {
  return filled(ngettext("%(count)s time", "%(count)s times", many), { count: count(many) });
}
