// Writes figures, times and places as text. Pure except for the chosen units; the clock and the zone are passed in.

import { fieldText, inSentence } from "./objects/field-words.js";
import { filled, gettext, LOCALE, ngettext, number, pgettext } from "./i18n.js";
import { measureOf } from "./quantities.js";
import { formOf, polygonsOf } from "./shapes.js";
import { LENGTHS_M, units } from "./units.js";

const MINUS = "\u2212";
const NONE = "\u2013";

/** The sign of a result tuple, by its number. */
export const SIGNS = { "-1": MINUS, 0: "~", 1: "+" };

// How to write a value, by the ending of its field's name, which gives the unit (speed_mps, course_deg).
/** @type {[string, (amount: number, name: string) => string][]} */
const UNITS = [
  ["_time_us", (us) => utcTime(us / 1000)],
  ["_us", (us) => utcTime(us / 1000)],
  ["_mps", (mps, name) => (measureOf(name)?.quantity === "climb" ? climb(mps) : speed(mps))],
  ["_kmh", (kmh) => speed(kmh / 3.6)],
  ["_kn", (knots) => speed((knots * LENGTHS_M.nm) / 3600)],
  ["_deg_per_min", (rate) => `${number(rate, 1)}\u00b0/min`],
  ["_deg", (deg) => `${number(deg, 1)}\u00b0`],
  ["_fpm", (fpm) => climb((fpm * LENGTHS_M.ft) / 60)],
  ["_ft", (ft) => altitude(ft * LENGTHS_M.ft)],
  ["_nm", (nm) => length(nm * LENGTHS_M.nm)],
  ["_km", (km) => length(km * LENGTHS_M.km)],
  ["_m", (m, name) => (/altitude|elevation/.test(name) ? altitude(m) : length(m))],
  ["_s", (s) => `${number(s, 0)} s`],
  ["_kg", (kg) => inUnit(kg, units().mass)],
  ["_c", temperature],
  ["_pct", (percent) => `${number(percent, 0)} %`],
];

/** A count with thousands separated: 12,345. */
export function count(amount) {
  return Math.round(amount).toLocaleString(LOCALE);
}

// A feed that is out of order has a few stale elements. More of them come from wrong times.
const STALE_SHARE = 0.01;

/** Return a warning if more than 1 % of a stream's elements are stale (older than the newest known of their object); else "". */
export function staleness({ stale = 0, elements = 0 }) {
  return stale > STALE_SHARE * elements
    ? filled(gettext("%(count)s stale: check its times"), { count: count(stale) })
    : "";
}

/** An amount of SI units in a unit of `SYSTEMS`. */
function inUnit(amount, /** @type {any[]} */ [symbol, each, decimals]) {
  return `${number(amount / each, decimals)} ${symbol}`;
}

/** A speed over the ground. */
export function speed(mps) {
  return inUnit(mps, units().speed);
}

/** A speed upwards, or downwards where it is negative. */
function climb(mps) {
  return inUnit(mps, units().climb);
}

/** A height above the sea. */
export function altitude(m) {
  return inUnit(m, units().altitude);
}

function temperature(celsius) {
  return units().celsius ? `${number(celsius, 1)} \u00b0C` : `${number(32 + 1.8 * celsius, 1)} \u00b0F`;
}

/** A length: "850 m", "9.26 km", "5 nm". */
export function length(m) {
  if (!Number.isFinite(m)) return NONE;
  const { short, long, shortM } = units();
  if (Math.abs(m) >= shortM) return `${rough(m / long[1])} ${long[0]}`;
  return inUnit(m, Math.abs(m) < 100 * short[1] ? [...short, 1] : [...short, 0]);
}

/** Return a number with two decimals below 10, with one below 100, and with none from there on. */
function rough(amount) {
  return number(amount, amount < 10 ? 2 : amount < 100 ? 1 : 0);
}

const [NORTH, EAST] = [pgettext("direction", "N"), pgettext("direction", "E")];
const [SOUTH, WEST] = [pgettext("direction", "S"), pgettext("direction", "W")];

/** A place as 60.1699° N, 24.9384° E; with points in all languages, since a comma is between the two. */
export function place(lonDeg, latDeg, decimals = 4) {
  if (!Number.isFinite(lonDeg) || !Number.isFinite(latDeg)) return NONE;
  const lon = lonDeg - 360 * Math.floor((lonDeg + 180) / 360);
  return `${Math.abs(latDeg).toFixed(decimals)}\u00b0 ${latDeg < 0 ? SOUTH : NORTH}, ${Math.abs(lon).toFixed(decimals)}\u00b0 ${lon < 0 ? WEST : EAST}`;
}

/** A longitude (axis 0) or latitude (1): "24.5° E". */
export function degrees(deg, axis) {
  const [after, before] = [
    [EAST, WEST],
    [NORTH, SOUTH],
  ][axis];
  return `${number(Math.abs(deg), 2)}°${deg === 0 ? "" : ` ${deg < 0 ? before : after}`}`;
}

/** Hours, minutes and seconds in UTC. */
export function utcClock(ms) {
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(11, 19) : NONE;
}

/** Date and time in UTC. */
export function utcTime(ms) {
  return Number.isFinite(ms) ? `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC` : NONE;
}

/** Return a span of time in UTC, with the day only once if it is the same: "2026-11-21 10:00:00 to 11:00:00 UTC". */
export function utcSpan(fromMs, toMs) {
  const [from, to] = [utcTime(fromMs), utcTime(toMs)];
  if (from === to) return to;
  const sameDay = from.slice(0, 10) === to.slice(0, 10);
  return filled(gettext("%(from)s to %(to)s"), { from: from.replace(" UTC", ""), to: sameDay ? to.slice(11) : to });
}

/** Date and time in a time zone; the browser's own where none is given. */
export function localTime(ms, timeZone) {
  if (!Number.isFinite(ms)) return NONE;
  const date = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeZone }).format(ms);
  return `${date} ${localClock(ms, timeZone)}`;
}

/** Hours, minutes and seconds in a time zone; the browser's own where none is given. */
export function localClock(ms, timeZone) {
  /** @type {Intl.DateTimeFormatOptions} */
  const options = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone };
  return Number.isFinite(ms) ? new Intl.DateTimeFormat("en-GB", options).format(ms) : NONE;
}

/** Whether a time zone agrees with UTC at a moment; the browser's own where none is given. */
export function isUtc(ms, timeZone) {
  return localTime(ms, timeZone) === utcTime(ms).replace(" UTC", "");
}

/** Date and time in UTC, with local time where that differs. */
export function bothTimes(ms, timeZone) {
  return isUtc(ms, timeZone)
    ? utcTime(ms)
    : filled(gettext("%(utc)s, %(local)s local"), { utc: utcTime(ms), local: localTime(ms, timeZone) });
}

/** How long ago: "now", "12 s", "3 min", "5 h", "2 d". */
export function age(ms) {
  if (!Number.isFinite(ms)) return NONE;
  const s = Math.max(0, ms) / 1000;
  if (s < 1.5) return gettext("now");
  if (s < 100) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  return s < 129600 ? `${Math.round(s / 3600)} h` : `${count(s / 86400)} d`;
}

/** A lag: "340 ms", "2.4 s", "3 min". */
export function lag(ms) {
  if (!Number.isFinite(ms)) return NONE;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 100_000 ? `${number(ms / 1000, 1)} s` : age(ms);
}

/** A field's name as a label: "speed_mps" is "Speed". */
export function label(name) {
  const ending = UNITS.find(([suffix]) => name.endsWith(suffix) && name.length > suffix.length);
  return fieldText(ending ? name.slice(0, -ending[0].length) : name);
}

/** A field's value as text, in the unit that its name says. */
export function value(name, content) {
  if (content === null || content === undefined || content === "") return NONE;
  if (typeof content === "boolean") return content ? gettext("yes") : gettext("no");
  if (typeof content === "object") return JSON.stringify(content);
  if (typeof content !== "number") return String(content);
  if (/^time(stamp)?$/.test(name) && content > 1e9) return utcTime(content < 1e11 ? content * 1000 : content);
  const ending = UNITS.find(([suffix]) => name.endsWith(suffix));
  if (ending) return ending[1](content, name);
  return /(^|_)(id|number|mmsi|imo|year)$/.test(name) ? String(content) : number(content, 3);
}

/** The properties that a text holds; none where it is not JSON. */
export function parsed(text) {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return {};
  }
}

/** Properties as rows of [label, text], those without a value left out. */
export function properties(object) {
  return Object.entries(object)
    .filter(([, content]) => content !== null && content !== undefined && content !== "")
    .map(([name, content]) => [label(name), value(name, content)]);
}

// The properties that may hold the name of a thing, best first.
const TITLES = [
  "name",
  "ship_name",
  "vessel_name",
  "call_sign",
  "callsign",
  "flight",
  "registration",
  "label",
  "title",
];

/** What a thing is called: its name, or else its key. */
export function title(key, object) {
  const name = TITLES.find((field) => typeof object[field] === "string" && object[field].trim());
  return name ? object[name].trim() : key;
}

// Endings of files that layers come in, as docs/layers.md lists them.
const LAYER_SUFFIX = /(\.(geojson|json|geojsonl|geojsons|ndjson|topojson|gpkg|shp|kml|fgb|gpx))?(\.gz|\.zip)?$|\.kmz$/i;

/** A title for a layer from a file's name: "city_parks.geojson.gz" is "City parks". */
export function layerTitle(fileName) {
  const words = fileName
    .replace(LAYER_SUFFIX, "")
    .replace(/[_\s-]+/g, " ")
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A name for a layer from a file's name: lower case letters, digits, - and _, a letter first, 40 at most. */
export function layerName(fileName) {
  const plain = fileName.replace(LAYER_SUFFIX, "").normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const name = plain
    .replace(/[^a-z0-9-]+/g, "_")
    .replace(/^[^a-z]+|[^a-z0-9]+$/g, "")
    .slice(0, 40);
  return name || "layer";
}

const TYPE_WORDS = {
  Point: (many) => ngettext("point", "points", many),
  LineString: (many) => ngettext("line", "lines", many),
  Polygon: (many) => ngettext("polygon", "polygons", many),
};

/** What a layer's features are called: "polygons", or "features" where they are mixed. */
export function geometryTypes(types, features) {
  const kinds = new Set((types ?? []).map((type) => type.replace("Multi", "")));
  const words = kinds.size === 1 ? TYPE_WORDS[[...kinds][0]] : undefined;
  return words ? words(features) : ngettext("feature", "features", features);
}

/** The predicates of joins: name, words about a partner, words for a choice in a form. */
export const PREDICATES = [
  ["intersects", gettext("in or touching %(partner)s"), gettext("intersects: meets it anywhere")],
  ["within", gettext("within %(partner)s"), gettext("within: lies in it")],
  ["dwithin", gettext("near %(partner)s"), gettext("within a distance of it")],
  ["covered_by", gettext("covered by %(partner)s"), gettext("covered by: lies in it or on its border")],
  ["contains", gettext("containing %(partner)s"), gettext("contains: has it inside")],
  ["covers", gettext("covering %(partner)s"), gettext("covers: has it inside or on the border")],
  ["touches", gettext("touching %(partner)s"), gettext("touches: meets only its border")],
  ["crosses", gettext("crossing %(partner)s"), gettext("crosses: passes through it")],
  ["overlaps", gettext("overlapping %(partner)s"), gettext("overlaps: shares a part of it")],
  ["equals", gettext("equal to %(partner)s"), gettext("equals: is the same shape")],
  ["disjoint", gettext("apart from %(partner)s"), gettext("disjoint: does not meet it")],
  ["boxes", gettext("with its box meeting %(partner)s"), gettext("boxes: their boxes meet")],
];

// The words for the end and for the beginning of a pair, by predicate.
const PAIR_WORDS = {
  dwithin: [gettext("%(name)s went away from %(partner)s"), gettext("%(name)s came near %(partner)s")],
  disjoint: [gettext("%(name)s met %(partner)s"), gettext("%(name)s parted from %(partner)s")],
  contains: [gettext("%(name)s no longer contains %(partner)s"), gettext("%(name)s contains %(partner)s")],
  covers: [gettext("%(name)s no longer covers %(partner)s"), gettext("%(name)s covers %(partner)s")],
  equals: [gettext("%(name)s no longer equals %(partner)s"), gettext("%(name)s equals %(partner)s")],
  touches: [gettext("%(name)s no longer touches %(partner)s"), gettext("%(name)s touches %(partner)s")],
  closest: [
    gettext("%(name)s no longer comes close to %(partner)s"),
    gettext("%(name)s will come close to %(partner)s"),
  ],
};
const ENTRY_WORDS = [gettext("%(name)s left %(partner)s"), gettext("%(name)s entered %(partner)s")];

/** Say in words what happened to an object, "Bus 12 entered Nuuksio", or to a threshold; only the name if there is no partner. */
export function happened(name, event) {
  if (event.threshold) return crossingText(event);
  const { partner, predicate, sign } = event;
  if (!partner) return name;
  if (event.told) return withDistance(filled(gettext("%(name)s met %(partner)s"), { name, partner }), event.distance);
  if (event.met) return withDistance(metText(name, event), event.distance);
  const what = filled((PAIR_WORDS[predicate] ?? ENTRY_WORDS)[sign > 0 ? 1 : 0], { name, partner });
  return event.closest && sign > 0
    ? filled(gettext("%(what)s: %(closest)s"), {
        what,
        closest: closestText(event.closest.distance, event.closest.afterS),
      })
    : what;
}

/** Say how far two objects will be from each other where they are closest, and in what time: "500 m in 4 min". */
export function closestText(distance, afterS) {
  const minutes = afterS >= 60;
  const time = filled(minutes ? gettext("%(number)s min") : gettext("%(number)s s"), {
    number: number(minutes ? afterS / 60 : Math.max(0, afterS), 0),
  });
  return filled(gettext("%(distance)s in %(time)s"), { distance: length(distance), time });
}

function withDistance(what, metres) {
  return Number.isFinite(metres) ? filled(gettext("%(what)s, %(distance)s"), { what, distance: length(metres) }) : what;
}

/** Say that two met or parted, and how long that lasted if its end is known. */
function metText(name, { partner, sign, sinceMs, untilMs }) {
  if (sign > 0) return filled(gettext("%(name)s meets %(partner)s"), { name, partner });
  if (untilMs === null) return filled(gettext("%(name)s parted from %(partner)s"), { name, partner });
  return filled(gettext("%(name)s parted from %(partner)s after %(time)s"), {
    name,
    partner,
    time: age(untilMs - sinceMs),
  });
}

/** Say from when until when an encounter was, and why it ended: "12:00:05 to 12:42:10 \u00b7 partner moved away". */
export function spanText({ sign, sinceMs, untilMs, nearestMs, reason: why }) {
  const times = {
    from: utcClock(sinceMs),
    to: untilMs === null ? gettext("now") : utcClock(untilMs),
    nearest: utcClock(nearestMs),
  };
  if (sign > 0) return filled(gettext("since %(from)s \u00b7 nearest at %(nearest)s"), times);
  const ended = why === "moved" ? gettext("moved away") : reason(why, sign);
  return filled(gettext("%(from)s to %(to)s \u00b7 nearest at %(nearest)s \u00b7 %(why)s"), { ...times, why: ended });
}

/** Say when a told pair was one: in which window, or how long before or after the object its partner reported. */
export function toldText({ partner, timeMs, partnerTimeMs, windowMs }) {
  if (windowMs !== null) return filled(gettext("window from %(time)s"), { time: utcClock(windowMs) });
  const laterS = (partnerTimeMs - timeMs) / 1000;
  if (laterS === 0) return gettext("at the same time");
  const words = laterS > 0 ? gettext("%(partner)s %(seconds)s s later") : gettext("%(partner)s %(seconds)s s earlier");
  return filled(words, { partner, seconds: number(Math.abs(laterS), 1) });
}

/** Say how many pairs there are with a layer's features now; `joins` as `store.joinsOf(layer)` returns them. */
export function pairedText(joins) {
  const features = new Set(joins.flatMap(({ counts }) => [...counts.keys()]));
  const pairs = joins.reduce((sum, { counts }) => [...counts.values()].reduce((a, b) => a + b, sum), 0);
  const paired = filled(ngettext("%(count)s pair", "%(count)s pairs", pairs), { count: count(pairs) });
  const counted = filled(ngettext("%(count)s feature", "%(count)s features", features.size), {
    count: count(features.size),
  });
  return filled(gettext("%(pairs)s now, with %(features)s"), { pairs: paired, features: counted });
}

/** What the partners of a join may be: features of a layer, last positions of a stream, or stored positions of one. */
export const SOURCES = ["layer", "stream", "stored"];

/** What a group of an aggregate is called. */
export function groupName(group, /** @type {Record<string, any>} */ { group_by: groups } = {}) {
  return group === "null"
    ? filled(gettext("no %(group)s"), { group: groups ? inSentence(label(groups)) : gettext("group") })
    : group;
}

/** Return an aggregate's value as text, with its unit. */
export function figureText(figure, /** @type {Record<string, any>} */ { function: name, property, dimension } = {}) {
  if (figure === null || figure === undefined) return NONE;
  if (name === "count") return count(figure);
  return property ? value(property, figure) : number(figure, dimension ? 5 : 3);
}

/** Say in words that a threshold was crossed, or is no longer: "Ships near X, cargo: above 20 (now 23)". */
export function crossingText({ queryName, group, threshold, sign, property = "", value: now }) {
  const limit = thresholdText(threshold, property);
  const what = sign > 0 ? limit : filled(gettext("no longer %(threshold)s"), { threshold: limit });
  const told = `${queryName}${group ? `, ${group}` : ""}: ${what}`;
  return now === null || now === undefined
    ? told
    : filled(gettext("%(what)s (now %(value)s)"), { what: told, value: value(property, now) });
}

/** Say what a threshold is, "above 20 for 300 s", given the engine's name of it and perhaps the property of the figure. */
export function thresholdText(name, property = "") {
  const [, side, given, seconds] = /^(above|below) (\S+)(?: for (\S+) s)?$/.exec(name) ?? [];
  if (!side) return name;
  const limit = measureOf(property) ? value(property, Number(given)) : given;
  const what = filled(side === "above" ? gettext("above %(limit)s") : gettext("below %(limit)s"), { limit });
  return seconds ? filled(gettext("%(what)s for %(seconds)s s"), { what, seconds }) : what;
}

/** Say what an area with a shape is: "in a circle of 5 km", "in a polygon"; nothing for a box. */
export function shapeText(area) {
  const form = formOf(area);
  if (form === "circle") return filled(gettext("in a circle of %(radius)s"), { radius: length(area.circle.radius_m) });
  if (form === "corridor")
    return filled(gettext("in a corridor of %(width)s"), { width: length(area.corridor.width_m) });
  if (!form) return "";
  const pieces = polygonsOf(area).length;
  return filled(ngettext("in a polygon", "in %(count)s polygons", pieces), { count: count(pieces) });
}

/** Return an area in square metres as text, in squares of the unit of lengths: "12.3 km²". */
export function square(squareM) {
  const {
    long: [symbol, size],
    short: [shortSymbol, shortSize],
    shortM,
  } = units();
  const [unit, metres] = squareM < shortM ** 2 ? [shortSymbol, shortSize] : [symbol, size];
  const squares = squareM / metres ** 2;
  return `${number(squares, squares < 100 ? 1 : 0)}\u00a0${unit}²`;
}

// The engine's reasons in words, by sign.
const REASON_TEXT = {
  moved: [gettext("moved out"), gettext("moved"), gettext("moved in")],
  filtered: [gettext("no longer matches the filter"), gettext("matches the filter"), gettext("now matches the filter")],
  partner_moved: [gettext("partner moved away"), gettext("partner moved"), gettext("partner came near")],
  partner_filtered: [
    gettext("partner no longer matches the filter"),
    gettext("partner matches the filter"),
    gettext("partner now matches the filter"),
  ],
  focus_moved: [gettext("left behind by the centre"), gettext("the centre moved"), gettext("reached by the centre")],
  passed: [gettext("passed the closest point"), "", ""],
  others_moved: [gettext("others are nearer"), gettext("others moved"), gettext("others are no longer nearer")],
  registered: [gettext("left"), gettext("inside"), gettext("already inside")],
  edited: [gettext("left by the edit"), gettext("inside"), gettext("inside after the edit")],
  cancelled: [gettext("query ended"), gettext("query ended"), gettext("query ended")],
  failed: [gettext("the query failed"), gettext("the query failed"), gettext("the query failed")],
  expired: [gettext("no recent report"), gettext("reported"), gettext("reported again")],
  handoff: [gettext("handed over"), gettext("handed over"), gettext("handed over")],
  dropped: [gettext("stream removed"), gettext("stream removed"), gettext("stream removed")],
  snapshot: [gettext("gone while catching up"), gettext("inside"), gettext("found while catching up")],
};

/** Why a tuple was produced, in words. */
export function reason(name, sign) {
  return REASON_TEXT[name]?.[sign + 1] ?? name;
}
