// Plans of questions to sketches, from the fields of the form, and back. Pure.

import { instantOf, SPANS } from "../../history/history.js";
import { filled, gettext } from "../../i18n.js";

const DAY_S = 86_400;
const MOST_FEATURES = 32;
/** Spans of time up to now, by name: their length in seconds, and their label. */
export const LAST = {
  ...Object.fromEntries(Object.entries(SPANS).map(([name, [ms, words]]) => [name, [ms / 1000, words]])),
  month: [30 * DAY_S, gettext("Last 30 days")],
  year: [365 * DAY_S, gettext("Last 365 days")],
};
/** What the panel can show: name, label. */
export const SHOWS = [
  ["series", gettext("Climate chart")],
  ["histogram", gettext("Histogram")],
  ["correlation", gettext("Correlations")],
  ["forecast", gettext("Trend and forecast")],
];
const HORIZONS = { hour: 24 * 3600, day: 30 * DAY_S, week: 12 * 7 * DAY_S, month: 365 * DAY_S, year: 5 * 365 * DAY_S };
const MOST_AHEAD = 5000; // steps of the sketch that a forecast looks ahead
const BINS = 24;

/** Return the plan of the form's fields; see `asksOf` for the questions. `place` and `other` are `{area}`, `{polygon}` or `{}`. */
export function planFrom(fields) {
  const { stream, place, other } = fields;
  const time = timeFrom(fields);
  return {
    stream,
    kind: "sketch",
    ask: asksOf(fields),
    ...place,
    ...(time && { time }),
    ...(other && { other }),
  };
}

/** Return the questions: always what the feature is like as a whole; then what is shown besides. */
function asksOf({ feature, features, comoments, shows, every, binS, other }) {
  const of = { features: [feature] };
  /** @type {Record<string, any>[]} */
  const asks = [{ question: "select", ...of }];
  if (shows.includes("series")) asks.push({ question: "series", ...of, every });
  if (shows.includes("histogram"))
    asks.push({ question: "histogram", ...of, bins: BINS }, { question: "deciles", ...of });
  if (shows.includes("correlation") && comoments.length > 1)
    asks.push({ question: "correlation", features: comoments.slice(0, MOST_FEATURES) });
  if (shows.includes("forecast"))
    asks.push({ question: "forecast", ...of, horizon_s: Math.min(HORIZONS[every], MOST_AHEAD * binS) });
  if (other)
    asks.push({
      question: "contrast",
      features: [feature, ...features.filter((name) => name !== feature)].slice(0, MOST_FEATURES),
      statistic: "mean",
    });
  return asks;
}

/** Return the times of the fields as a plan has them; null for all times. */
export function timeFrom({ span, from, to, zone, dailyFrom, dailyTo, zoneName }) {
  const range = span === "custom" ? rangeFrom(from, to, zone) : null;
  const time = {
    ...(range && { ranges: [range] }),
    ...(LAST[span] && { last_s: LAST[span][0] }),
    ...(dailyFrom && dailyTo && { daily: { from: dailyFrom, to: dailyTo } }),
    ...(zone === "local" && zoneName !== "UTC" && { zone: zoneName }),
  };
  return Object.keys(time).length > 0 ? time : null;
}

/** Return a range of times of a form's texts, with open ends where one is empty; null if both are. */
export function rangeFrom(from, to, zone) {
  const ends = Object.entries({ from: instantOf(from, zone), to: instantOf(to, zone) }).filter(([, ms]) =>
    Number.isFinite(ms),
  );
  return ends.length > 0 ? Object.fromEntries(ends.map(([end, ms]) => [end, new Date(ms).toISOString()])) : null;
}

/** Return what is wrong with the fields, by field; an empty object if nothing is. */
export function faultsOf({ stream, feature, where, place, span, from, to, zone, against, other, dailyFrom, dailyTo }) {
  const faults = {};
  if (!stream) faults.stream = gettext("Choose a stream that is sketched.");
  else if (!feature) faults.feature = gettext("Choose a feature.");
  if (!place)
    faults.where =
      where === "query"
        ? gettext("Choose a query with an area.")
        : gettext("Draw the area on the map, or choose another one.");
  if (span === "custom" && !rangeFrom(from, to, zone)) faults.span = gettext("Type a beginning, an end, or both.");
  if (span === "custom" && instantOf(from, zone) >= instantOf(to, zone))
    faults.span = filled(gettext("The beginning must be before the end; got %(from)s and %(to)s."), { from, to });
  if (Boolean(dailyFrom) !== Boolean(dailyTo)) faults.daily = gettext("Type both hours, or none.");
  if (against !== "nothing" && !other)
    faults.against =
      against === "place"
        ? gettext("Draw the other area on the map.")
        : gettext("Type the beginning and the end of the other time.");
  return faults;
}

/** Return the length of a step that gives a chart at most some 60 of them. */
export function everyFor(spanMs) {
  const hours = spanMs / 3_600_000;
  if (hours <= 72) return "hour";
  if (hours <= 24 * 70) return "day";
  if (hours <= 24 * 365) return "week";
  return hours <= 24 * 365 * 8 ? "month" : "year";
}
