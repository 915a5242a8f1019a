// Explanations in the words of the page. Pure.

import { age, length, title, utcClock, utcTime } from "../format.js";
import { filled, gettext, LOCALE, number } from "../i18n.js";
import { unitsName } from "../units.js";

/** How a term stands: a sign, and what it says to those who do not see it. */
const MARKS = {
  true: ["\u2713", gettext("holds")],
  false: ["\u2717", gettext("does not hold")],
  null: ["?", gettext("not known")],
};
/** How the parts of a term decide it. */
const JOINED = {
  all: gettext("all of these"),
  any: gettext("one of these at least"),
  not: gettext("not this"),
  told: "",
};
const STEPS = {
  reported: gettext("Reported"),
  heard: gettext("Heard by the gateway"),
  told: gettext("Told by the engine"),
  recorded: gettext("Stored"),
  opened: gettext("Incident opened"),
};
const STATES = {
  sent: gettext("sent"),
  pending: gettext("waits to be sent"),
  failed: gettext("failed, and is tried again"),
  dead: gettext("given up"),
  digested: gettext("sent within a digest"),
};
const METRIC = /(\d(?:[\d.,]*\d)?) (km|m)\b(?!\/)/g;
const DECIMAL = (1.1).toLocaleString(LOCALE).charAt(1);

/** The sign of a term, and its words: `[sign, words]`. */
export function markOf({ holds }) {
  return MARKS[holds];
}

/** Say how the parts of a term decide it; empty if they say only more about it. */
export function joinedText({ of, parts }) {
  return parts?.length > 1 || of === "not" ? (JOINED[of] ?? "") : "";
}

/** Return the terms that decide: because of them an explanation does not hold, or is not known. */
export function deciding(term) {
  return [...(term.decides ? [term] : []), ...(term.parts ?? []).flatMap(deciding)];
}

/** Return a text of the server, whose lengths are metric, with lengths in the chosen units. */
export function inUnits(text) {
  if (unitsName() === "metric") return text;
  return text.replace(METRIC, (_, figure, unit) => length(figureOf(figure) * (unit === "km" ? 1000 : 1)));
}

/** The number that the language of the page writes so, such as "1,234.5", or "1.234,5" in German. */
function figureOf(text) {
  const [whole, decimals = ""] = text.split(DECIMAL);
  return Number(`${whole.replace(/\D/g, "")}.${decimals}`);
}

/** Say in a few words whether an object is in the answer, or why there was an event. */
export function verdict({ event, incident, why, found }) {
  if (event || incident)
    return incident
      ? gettext("Why the incident was opened")
      : event.sign === "+"
        ? gettext("Why it entered")
        : gettext("Why it left");
  if (why.holds === null) return gettext("It cannot be known whether it is in the answer");
  if (!why.holds) return gettext("Not in the answer");
  return found ? filled(gettext("In the answer, %(found)s"), { found }) : gettext("In the answer");
}

/** The heading of an explanation: the verdict, and what was found about the whole. */
export function heading(told) {
  const { found } = told.why;
  if (!found) return verdict(told);
  // Of events, only those of rules have it: since when the alarm lasts.
  return told.event || told.incident
    ? `${verdict(told)}. ${filled(gettext("Alarm %(since)s."), { since: found })}`
    : `${verdict(told)}, ${found}`;
}

/** The title of an explanation: the object, by its name if it has one. */
export function subjectText({ fix, event }, key) {
  return title(fix?.key ?? event?.key ?? key, fix?.properties ?? {});
}

/** Return the steps from the report to the alarm: `[{text, at, after}]`, with the time since the step before; the first has its day. */
export function lagRows(lag) {
  return lag.map(({ what, at }, i) => {
    const afterMs = i > 0 ? Date.parse(at) - Date.parse(lag[i - 1].at) : null;
    return {
      text: STEPS[what] ?? what,
      at: (i > 0 ? utcClock : utcTime)(Date.parse(at)),
      after: afterMs === null ? "" : sinceText(afterMs),
    };
  });
}

function sinceText(ms) {
  if (ms < 0) return filled(gettext("%(duration)s before"), { duration: sinceText(-ms).slice(1) });
  return ms < 1000 ? `+${Math.round(ms)} ms` : ms < 60_000 ? `+${number(ms / 1000, 1)} s` : `+${age(ms)}`;
}

/** Say what happened to a delivery. */
export function deliveryText({ what, channel, kind, to, state, next }) {
  const told = { what, channel, kind, to, state: STATES[state] ?? state, time: next && utcTime(Date.parse(next)) };
  const words = next
    ? gettext("%(what)s to %(to)s by %(channel)s (%(kind)s): %(state)s, next attempt %(time)s")
    : gettext("%(what)s to %(to)s by %(channel)s (%(kind)s): %(state)s");
  return filled(words, told);
}

/** Say how an attempt to deliver ended. */
export function attemptText({ outcome, status, took_ms: tookMs, error }) {
  return [outcome, status && filled(gettext("status %(status)s"), { status }), tookMs !== null && `${tookMs} ms`, error]
    .filter(Boolean)
    .join(", ");
}

/**
 * Return the border to draw: that of a term that decides, or else the nearest one: `{from, to, distanceM}` in longitude and
 * latitude; null without one. The end is moved by a turn if the way is shorter across the antimeridian.
 */
export function lineTo(why) {
  const nearest = (terms) =>
    terms
      .filter(({ border }) => border?.element && border.place)
      .sort((a, b) => Math.abs(a.border.distance_m) - Math.abs(b.border.distance_m))[0];
  const found = nearest(deciding(why)) ?? nearest(all(why));
  if (!found) return null;
  const {
    element: from,
    place: [lon, lat],
    distance_m: distanceM,
  } = found.border;
  return { from, to: [lon - 360 * Math.round((lon - from[0]) / 360), lat], distanceM };
}

function all(term) {
  return [term, ...(term.parts ?? []).flatMap(all)];
}

/** Say how far a border is. */
export function borderText(distanceM) {
  return filled(distanceM > 0 ? gettext("%(length)s outside") : gettext("%(length)s inside"), {
    length: length(Math.abs(distanceM)),
  });
}
