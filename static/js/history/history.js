// Questions to stored tables, and what their answers show: places, tracks, columns, words. Pure.

import { middle, turnTowards } from "../geometry.js";
import { count, utcClock, utcSpan, utcTime } from "../format.js";
import { filled, gettext, ngettext } from "../i18n.js";

export const LIMITS = [1000, 10_000];
const HOUR_MS = 3_600_000;
/** Spans of time that end now, by name: their length in milliseconds, and their label. */
export const SPANS = {
  hour: [HOUR_MS, gettext("Last hour")],
  day: [24 * HOUR_MS, gettext("Last 24 hours")],
  week: [168 * HOUR_MS, gettext("Last 7 days")],
};

/** A table as the server names it, from the value of a choice: "stored:ships" is {stored: "ships"}. */
export function tableOf(choice) {
  const at = choice.indexOf(":");
  return at > 0 ? { [choice.slice(0, at)]: choice.slice(at + 1) } : null;
}

/** Return the milliseconds since 1970 of a time in a form's text, "2026-11-21T15:00", in "utc" or "local" time; NaN if it is none. */
export function instantOf(text, zone) {
  return text ? new Date(zone === "utc" ? `${text}Z` : text).getTime() : NaN;
}

/** The inverse of `instantOf`, to the second. */
export function formTime(ms, zone) {
  const shifted = zone === "utc" ? ms : ms - new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(shifted).toISOString().slice(0, 19);
}

/**
 * Return the span of time that the fields ask for, in milliseconds: `{from, to}`, with null for an open end; null for all times.
 *
 * @param {Record<string, any>} fields `span` (a name of `SPANS`, "all" or "custom"), `from`, `to` and `zone` as `instantOf` has them
 * @param {number} nowMs the table's own time
 */
export function spanOf({ span, from, to, zone }, nowMs) {
  if (span === "all") return null;
  if (span !== "custom") return { from: nowMs - SPANS[span][0], to: null };
  const ends = [instantOf(from, zone), instantOf(to, zone)].map((ms) => (Number.isNaN(ms) ? null : ms));
  return ends[0] === null && ends[1] === null ? null : { from: ends[0], to: ends[1] };
}

/** Return what is wrong with a question, by field; an empty object if nothing is. */
export function faultsOf(fields) {
  const { table, join, partner, predicate, distance, where, box, span, from, to, zone } = fields;
  const faults = {};
  if (!table) faults.table = gettext("Choose a stored stream or a layer.");
  if (join && !partner) faults.partner = gettext("Choose the table to join with.");
  if (join && predicate === "dwithin" && !(distance >= 0)) faults.distance = gettext("Type a distance.");
  if (where === "rectangle" && !box) faults.box = gettext("Draw a rectangle on the map, or choose the view.");
  if (span === "custom" && instantOf(from, zone) > instantOf(to, zone)) {
    faults.span = filled(gettext("The beginning must not be later than the end; got %(from)s > %(to)s."), { from, to });
  }
  if (span === "custom" && !from && !to) faults.span = gettext("Type a beginning, an end, or both.");
  return faults;
}

/** Return the message that asks a question, given the form's fields; `box` is null for everywhere, `span` as `spanOf` returns it. */
export function questionOf({ table, key, join, partner, predicate, distance, box, span, limit }) {
  if (!join && key) return { type: "table.get", table, key, limit: LIMITS.at(-1) }; // the page selects its rows by box and span
  const asked = { limit };
  if (box) asked.box = box;
  const ends = Object.entries(span ?? {}).filter(([, ms]) => ms !== null);
  if (ends.length > 0) asked.span = Object.fromEntries(ends.map(([end, ms]) => [end, new Date(ms).toISOString()]));
  if (!join) return { type: "table.query", table, ...asked };
  const compared = predicate === "dwithin" ? { predicate, distance } : { predicate };
  return { type: "table.join", left: table, right: partner, ...compared, ...asked };
}

/** Return the rows of one key that lie in a box and a span of time; null stands for everywhere, and for all times. */
export function chosen(rows, box, span) {
  return rows.filter((row) => {
    const ms = timeOf(row);
    const timely = !span || Number.isNaN(ms) || (ms >= (span.from ?? -Infinity) && ms <= (span.to ?? Infinity));
    return timely && (!box || meets(row, box));
  });
}

/** Return whether a row meets a box of longitudes and latitudes, perhaps 360 degrees to the east or west. */
function meets({ lo, hi }, box) {
  const [west, south, east, north] = [lo[0] ?? -Infinity, lo[1] ?? -Infinity, hi[0] ?? Infinity, hi[1] ?? Infinity];
  const eastwards = [-360, 0, 360].some((turn) => west + turn <= box.hi[0] && east + turn >= box.lo[0]);
  return eastwards && south <= box.hi[1] && north >= box.lo[1];
}

/** Return the time of a row in milliseconds since 1970; NaN if it has none. */
export function timeOf({ time }) {
  return time === null || time === undefined ? NaN : Date.parse(time);
}

/** Return the middle of a row's box as [longitude, latitude], NaN where it is unbounded. Without a box, return its point, or NaN. */
export function placeOf({ lo, hi, geometry }) {
  if (!lo) return geometry?.type === "Point" ? geometry.coordinates.slice(0, 2) : [NaN, NaN];
  return [0, 1].map((axis) => middle(lo[axis] ?? -Infinity, hi[axis] ?? Infinity));
}

/** Whether a row is a point on the map. */
export function isPoint({ lo, hi, geometry }) {
  return geometry ? geometry.type === "Point" : !lo || (lo[0] === hi[0] && lo[1] === hi[1]);
}

/**
 * Return the tracks of rows that are ordered by key and time: by key, its places `[[lon, lat], ...]`. A track never takes
 * the long way round the world. Rows without a time belong to no track, and a key with one place has none.
 */
export function tracksOf(rows) {
  const tracks = new Map();
  for (const row of rows) {
    const [lon, lat] = placeOf(row);
    if (Number.isNaN(timeOf(row)) || !Number.isFinite(lon) || !Number.isFinite(lat)) continue;
    if (!tracks.has(row.key)) tracks.set(row.key, []);
    const track = tracks.get(row.key);
    const last = track.at(-1);
    if (last && last[0] === lon && last[1] === lat) continue;
    track.push([last ? lon + turnTowards(lon, last[0]) : lon, lat]);
  }
  return new Map([...tracks].filter(([, track]) => track.length > 1));
}

/** Return the smallest box around rows, across the antimeridian if that is smaller; null if no row has a place. */
export function boxAround(rows) {
  const places = rows.map(placeOf).filter(([lon, lat]) => Number.isFinite(lon) && Number.isFinite(lat));
  if (places.length === 0) return null;
  const lats = places.map(([, lat]) => lat);
  const around = (lons) => [lons.reduce((a, b) => Math.min(a, b)), lons.reduce((a, b) => Math.max(a, b))];
  const plain = around(places.map(([lon]) => lon));
  const turned = around(places.map(([lon]) => (lon < 0 ? lon + 360 : lon)));
  const [west, east] = turned[1] - turned[0] < plain[1] - plain[0] ? turned : plain;
  return { lo: [west, lats.reduce((a, b) => Math.min(a, b))], hi: [east, lats.reduce((a, b) => Math.max(a, b))] };
}

/** Return at most `limit` names of properties of rows; the names that most rows have come first. */
export function propertyNames(rows, limit) {
  const held = new Map();
  for (const { properties } of rows)
    for (const name of Object.keys(properties ?? {})) held.set(name, (held.get(name) ?? 0) + 1);
  return [...held]
    .sort(([, a], [, b]) => b - a)
    .slice(0, limit)
    .map(([name]) => name);
}

/** Describe an answer in words: "1,000 rows of 37 keys, 2026-11-21 10:00:00 to 11:00:00 UTC". */
export function summary(rows) {
  if (rows.length === 0) return gettext("Nothing is stored for this place and time.");
  const keys = new Set(rows.map(({ key }) => key)).size;
  const times = rows.map(timeOf).filter(Number.isFinite);
  const paired = rows.some(({ partner }) => partner);
  const found = paired
    ? ngettext("%(count)s pair", "%(count)s pairs", rows.length)
    : ngettext("%(count)s row", "%(count)s rows", rows.length);
  const texts = {
    rows: filled(found, { count: count(rows.length) }),
    keys: filled(ngettext("%(count)s key", "%(count)s keys", keys), { count: count(keys) }),
  };
  if (times.length === 0) return filled(gettext("%(rows)s of %(keys)s"), texts);
  const span = utcSpan(
    times.reduce((a, b) => Math.min(a, b)),
    times.reduce((a, b) => Math.max(a, b)),
  );
  return filled(gettext("%(rows)s of %(keys)s, %(span)s"), { ...texts, span });
}

/** Say in words what a truncated answer lacks. */
export function missing(question, rows) {
  const { limit, type } = question;
  if (type === "table.get") {
    return filled(gettext("This key has more rows. Only its newest %(count)s rows were searched."), {
      count: count(limit),
    });
  }
  const found =
    type === "table.join"
      ? gettext("There are more pairs. These are the first %(count)s by key and time.")
      : gettext("There are more rows. These are the first %(count)s by key and time.");
  const advice =
    limit < Math.max(...LIMITS)
      ? gettext("Choose a smaller place or time, or a larger maximum.")
      : gettext("Choose a smaller place or time.");
  return `${filled(found, { count: count(rows) })} ${advice}`;
}

/** Return the time of a row as text, without the day if `clockOnly`; empty if it has none. */
export function rowTime(row, clockOnly = false) {
  const ms = timeOf(row);
  if (!Number.isFinite(ms)) return "";
  return clockOnly ? utcClock(ms) : utcTime(ms);
}

/** Return whether all times of rows and of their partners lie on one day in UTC. */
export function ofOneDay(rows) {
  const times = rows.flatMap((row) => (row.partner ? [row.time, row.partner.time] : [row.time])).filter(Boolean);
  return new Set(times.map((time) => utcTime(Date.parse(time)).slice(0, 10))).size <= 1;
}

/** The distinct partners of pairs, in the order of their first pair. */
export function partnersOf(rows) {
  const partners = rows
    .filter(({ partner }) => partner)
    .map(({ partner }) => [JSON.stringify([partner.key, partner.time]), partner]);
  return [...new Map(partners).values()];
}
