// Writes figures, times and places as text. Pure except for the chosen units; the clock and the zone are passed in.

import { filled, gettext } from "./i18n.js";
import { kindOf } from "./kinds.js";
import { formOf, polygonsOf } from "./shapes.js";
import { timesOf } from "./time-joins.js";
import { LENGTHS_M, units } from "./units.js";
import { ruleText } from "./rules/rule-words.js";

const MPS_PER_FPM = LENGTHS_M.ft / 60;
const MPS_PER_KNOT = LENGTHS_M.nm / 3600;
const MINUS = "\u2212";
const NONE = "\u2013";

/** The sign of a result tuple, by its number. */
export const SIGNS = { "-1": MINUS, 0: "~", 1: "+" };

const VERTICAL = /vertical|climb|descent/;

// How to write a value, by the ending of its field's name, which gives the unit (speed_mps, course_deg).
const UNITS = [
  ["_time_us", (value) => utcTime(value / 1000)],
  ["_us", (value) => utcTime(value / 1000)],
  ["_mps", (value, name) => (VERTICAL.test(name) ? climb(value) : speed(value))],
  ["_kmh", (value) => speed(value / 3.6)],
  ["_kn", (value) => speed(value * MPS_PER_KNOT)],
  ["_deg_per_min", (value) => `${number(value, 1)}\u00b0/min`],
  ["_deg", (value) => `${number(value, 1)}\u00b0`],
  ["_fpm", (value) => climb(value * MPS_PER_FPM)],
  ["_ft", (value) => altitude(value * LENGTHS_M.ft)],
  ["_nm", (value) => length(value * LENGTHS_M.nm)],
  ["_km", (value) => length(value * LENGTHS_M.km)],
  ["_m", (value, name) => (/altitude|elevation/.test(name) ? altitude(value) : length(value))],
  ["_s", (value) => `${number(value, 0)} s`],
  ["_kg", (value) => inUnit(value, units().mass)],
  ["_c", temperature],
  ["_pct", (value) => `${number(value, 0)} %`],
];

/** A count with thousands separated: 12,345. */
export function count(value) {
  return Math.round(value).toLocaleString("en-US");
}

// A feed that is out of order has a few stale elements. More of them come from wrong times.
const STALE_SHARE = 0.01;

/** Return a warning if more than 1 % of a stream's elements are stale (older than the newest known of their object); else "". */
export function staleness({ stale = 0, elements = 0 }) {
  return stale > STALE_SHARE * elements ? `${count(stale)} stale: check its times` : "";
}

/** A number with at most `digits` decimals, and no trailing zeros. */
export function number(value, digits) {
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

/** An amount of SI units in a unit of `SYSTEMS`. */
function inUnit(value, [symbol, each, decimals]) {
  return `${number(value / each, decimals)} ${symbol}`;
}

/** A speed over the ground. */
export function speed(mps) {
  return inUnit(mps, units().speed);
}

/** A speed upwards, or downwards where it is negative. */
export function climb(mps) {
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
function rough(value) {
  return number(value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

/** A place as 60.1699° N, 24.9384° E. */
export function place(lonDeg, latDeg, decimals = 4) {
  if (!Number.isFinite(lonDeg) || !Number.isFinite(latDeg)) return NONE;
  const lon = lonDeg - 360 * Math.floor((lonDeg + 180) / 360);
  return `${Math.abs(latDeg).toFixed(decimals)}\u00b0 ${latDeg < 0 ? "S" : "N"}, ${Math.abs(lon).toFixed(decimals)}\u00b0 ${lon < 0 ? "W" : "E"}`;
}

/** A longitude (axis 0) or latitude (1): "24.5° E". */
export function degrees(value, axis) {
  const [after, before] = [["E", "W"], ["N", "S"]][axis];
  return `${number(Math.abs(value), 2)}°${value === 0 ? "" : ` ${value < 0 ? before : after}`}`;
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
  return `${from.replace(" UTC", "")} to ${from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to}`;
}

/** Date and time in a time zone; the browser's own where none is given. */
export function localTime(ms, timeZone) {
  if (!Number.isFinite(ms)) return NONE;
  const date = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeZone }).format(ms);
  return `${date} ${localClock(ms, timeZone)}`;
}

/** Hours, minutes and seconds in a time zone; the browser's own where none is given. */
export function localClock(ms, timeZone) {
  const options = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone };
  return Number.isFinite(ms) ? new Intl.DateTimeFormat("en-GB", options).format(ms) : NONE;
}

/** Whether a time zone agrees with UTC at a moment; the browser's own where none is given. */
export function isUtc(ms, timeZone) {
  return localTime(ms, timeZone) === utcTime(ms).replace(" UTC", "");
}

/** Date and time in UTC, with local time where that differs. */
export function bothTimes(ms, timeZone) {
  return isUtc(ms, timeZone) ? utcTime(ms) : `${utcTime(ms)}, ${localTime(ms, timeZone)} local`;
}

/** How long ago: "now", "12 s", "3 min", "5 h", "2 d". */
export function age(ms) {
  if (!Number.isFinite(ms)) return NONE;
  const s = Math.max(0, ms) / 1000;
  if (s < 1.5) return "now";
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
  const words = (ending ? name.slice(0, -ending[0].length) : name).replaceAll("_", " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A field's value as text, in the unit that its name says. */
export function value(name, content) {
  if (content === null || content === undefined || content === "") return NONE;
  if (typeof content === "boolean") return content ? "yes" : "no";
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
const TITLES = ["name", "ship_name", "vessel_name", "call_sign", "callsign", "flight", "registration", "label", "title"];

/** What a thing is called: its name, or else its key. */
export function title(key, object) {
  const name = TITLES.find((field) => typeof object[field] === "string" && object[field].trim());
  return name ? object[name].trim() : key;
}

// Endings of files that layers come in, as docs/layers.md lists them.
const LAYER_SUFFIX = /(\.(geojson|json|geojsonl|geojsons|ndjson|topojson|gpkg|shp|kml|fgb|gpx))?(\.gz|\.zip)?$|\.kmz$/i;

/** A title for a layer from a file's name: "city_parks.geojson.gz" is "City parks". */
export function layerTitle(fileName) {
  const words = fileName.replace(LAYER_SUFFIX, "").replace(/[_\s-]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A name for a layer from a file's name: lower case letters, digits, - and _, a letter first, 40 at most. */
export function layerName(fileName) {
  const plain = fileName.replace(LAYER_SUFFIX, "").normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const name = plain.replace(/[^a-z0-9-]+/g, "_").replace(/^[^a-z]+|[^a-z0-9]+$/g, "").slice(0, 40);
  return name || "layer";
}

const TYPE_WORDS = { Point: ["point", "points"], LineString: ["line", "lines"], Polygon: ["polygon", "polygons"] };

/** What a layer's features are called: "polygons", or "features" where they are mixed. */
export function geometryTypes(types, features) {
  const kinds = new Set((types ?? []).map((type) => type.replace("Multi", "")));
  const words = kinds.size === 1 ? TYPE_WORDS[[...kinds][0]] : undefined;
  return (words ?? ["feature", "features"])[features === 1 ? 0 : 1];
}

/** The predicates of joins: name, words between an object and its partner, words for a choice in a form. */
export const PREDICATES = [
  ["intersects", "in or touching", "intersects: meets it anywhere"],
  ["within", "within", "within: lies in it"],
  ["dwithin", "near", "within a distance of it"],
  ["covered_by", "covered by", "covered by: lies in it or on its border"],
  ["contains", "containing", "contains: has it inside"],
  ["covers", "covering", "covers: has it inside or on the border"],
  ["touches", "touching", "touches: meets only its border"],
  ["crosses", "crossing", "crosses: passes through it"],
  ["overlaps", "overlapping", "overlaps: shares a part of it"],
  ["equals", "equal to", "equals: is the same shape"],
  ["disjoint", "apart from", "disjoint: does not meet it"],
  ["boxes", "with its box meeting", "boxes: their boxes meet"],
];

// The words for the end and for the beginning of a pair, by predicate.
const PAIR_VERBS = {
  dwithin: ["went away from", "came near"],
  disjoint: ["met", "parted from"],
  contains: ["no longer contains", "contains"],
  covers: ["no longer covers", "covers"],
  equals: ["no longer equals", "equals"],
  touches: ["no longer touches", "touches"],
  closest: [gettext("no longer comes close to"), gettext("will come close to")],
};

/** Say in words what happened to an object, "Bus 12 entered Nuuksio", or to a threshold; only the name if there is no partner. */
export function happened(name, event) {
  if (event.threshold) return crossingText(event);
  const { partner, predicate, sign } = event;
  if (!partner) return name;
  if (event.told) return `${name} met ${partner}${Number.isFinite(event.distance) ? `, ${length(event.distance)}` : ""}`;
  if (event.met) {
    const nearest = Number.isFinite(event.distance) ? `, ${length(event.distance)}` : "";
    return `${name} ${sign > 0 ? `meets ${partner}` : `parted from ${partner}${lasted(event)}`}${nearest}`;
  }
  const [left, entered] = PAIR_VERBS[predicate] ?? ["left", "entered"];
  return `${name} ${sign > 0 ? entered : left} ${partner}${event.closest && sign > 0 ? `: ${closestText(event.closest.distance, event.closest.afterS)}` : ""}`;
}

/** Say how far two objects will be from each other where they are closest, and in what time: "500 m in 4 min". */
export function closestText(distance, afterS) {
  const minutes = afterS >= 60;
  const time = filled(minutes ? gettext("%(number)s min") : gettext("%(number)s s"), { number: number(minutes ? afterS / 60 : Math.max(0, afterS), 0) });
  return filled(gettext("%(distance)s in %(time)s"), { distance: length(distance), time });
}

function closestPlanText({ within_m: withinM, within_s: withinS, join, stream }, titleOf) {
  const values = { distance: length(withinM), minutes: number(withinS / 60, 1), stream: titleOf("stream", join?.stream ?? stream) };
  return filled(gettext("will come within %(distance)s of %(stream)s in %(minutes)s min"), values);
}

/** Say from when until when an encounter was, and why it ended: "12:00:05 to 12:42:10 \u00b7 partner moved away". */
export function spanText({ sign, sinceMs, untilMs, nearestMs, reason: why }) {
  const nearest = `nearest at ${utcClock(nearestMs)}`;
  if (sign > 0) return `since ${utcClock(sinceMs)} \u00b7 ${nearest}`;
  return `${utcClock(sinceMs)} to ${untilMs === null ? "now" : utcClock(untilMs)} \u00b7 ${nearest} \u00b7 ${why === "moved" ? "moved away" : reason(why, sign)}`;
}

/** Say how long an encounter lasted; nothing if its end is not known. */
function lasted({ sinceMs, untilMs }) {
  return untilMs === null ? "" : ` after ${age(untilMs - sinceMs)}`;
}

/** Say when a told pair was one: in which window, or how long before or after the object its partner reported. */
export function toldText({ partner, timeMs, partnerTimeMs, windowMs }) {
  if (windowMs !== null) return `window from ${utcClock(windowMs)}`;
  const laterS = (partnerTimeMs - timeMs) / 1000;
  if (laterS === 0) return "at the same time";
  return `${partner} ${number(Math.abs(laterS), 1)} s ${laterS > 0 ? "later" : "earlier"}`;
}

/** Say how close in time the reports of a join's pairs are: ", in the same 60 s"; nothing for a join of last positions. */
function timesText(plan) {
  const { when, windowS, slideS, beforeS, afterS, forMin } = timesOf(plan);
  const seconds = (value) => number(value, 3);
  if (when === "window") return `, in the same ${seconds(windowS)} s${slideS === null ? "" : `, every ${seconds(slideS)} s`}`;
  if (when === "encounter") return ` for at least ${seconds(forMin)} min`;
  return when === "interval" ? `, from ${seconds(beforeS)} s before to ${seconds(afterS)} s after` : "";
}

/** Say how many pairs there are with a layer's features now; `joins` as `store.joinsOf(layer)` returns them. */
export function pairedText(joins) {
  const features = new Set(joins.flatMap(({ counts }) => [...counts.keys()]));
  const pairs = joins.reduce((sum, { counts }) => [...counts.values()].reduce((a, b) => a + b, sum), 0);
  const noun = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
  return `${noun(pairs, "pair")} now, with ${noun(features.size, "feature")}`;
}

/** What the partners of a join may be: features of a layer, last positions of a stream, or stored positions of one. */
export const SOURCES = ["layer", "stream", "stored"];

/**
 * What a plan looks for: "inside", "within Forests", "within 10 km of MS Anna", "count inside".
 *
 * @param {function} titleOf returns what a layer or stream is called, given its source and name
 * @param {string} focus what the focal object is called, if that is known
 */
export function planText(plan, titleOf, focus) {
  if (plan?.aggregate) return `${aggregateText(plan.aggregate)} ${membersText(plan, titleOf, focus)}${groupText(plan.aggregate)}`;
  return membersText(plan, titleOf, focus);
}

const FUNCTION_WORDS = { count: "count", min: "smallest", max: "largest", sum: "sum of", avg: "average" };

/** What an aggregate computes: "count", "average speed", "largest latitude". */
export function aggregateText({ function: name, property, dimension }) {
  const of = dimension ?? (property && label(property).toLowerCase());
  return [FUNCTION_WORDS[name] ?? name, of].filter(Boolean).join(" ");
}

function groupText({ group_by: groups }) {
  return groups ? `, by ${label(groups).toLowerCase()}` : "";
}

/** What a group of an aggregate is called. */
export function groupName(group, { group_by: groups } = {}) {
  return group === "null" ? `no ${label(groups ?? "group").toLowerCase()}` : group;
}

/** Return an aggregate's value as text, with its unit. */
export function figureText(figure, { function: name, property, dimension } = {}) {
  if (figure === null || figure === undefined) return NONE;
  if (name === "count") return count(figure);
  return property ? value(property, figure) : number(figure, dimension ? 5 : 3);
}

/** Say in words that a threshold was crossed, or is no longer: "Ships near X, cargo: above 20 (now 23)". */
export function crossingText({ queryName, group, threshold, sign, value: now }) {
  const what = sign > 0 ? threshold : `no longer ${threshold}`;
  return `${queryName}${group ? `, ${group}` : ""}: ${what}${now === null || now === undefined ? "" : ` (now ${number(now, 3)})`}`;
}

/** Return the focus of a query as text: the object's name, or the place. */
export function focusText(around, name) {
  return around.at ? place(...around.at) : (name ?? around.key);
}

function membersText(plan, titleOf, focus) {
  if (plan?.kind === "rule") return ruleText(plan, (number) => titleOf("query", number));
  const shape = shapeText(plan?.area);
  const within = shape && ` ${shape}`;
  if (plan?.kind === "approach") return `${shapeText(plan.target) || "inside a rectangle"} within ${number(plan.within_s / 60, 1)} min`;
  if (plan?.kind === "closest_approach") return closestPlanText(plan, titleOf) + within;
  if (plan?.kind === "knn") return `${count(plan.k)} nearest to ${focusText(plan.around, focus)}${atMost(plan.max_distance)}${within}`;
  if (plan?.around) return aroundText(plan.around, focusText(plan.around, focus)) + within;
  if (kindOf(plan).report !== "join") return shape && !plan.compare ? shape : `${plan?.report ?? "inside"} a rectangle${within}`;
  const { predicate, distance } = plan.join;
  const source = SOURCES.find((one) => plan.join[one]);
  const name = titleOf(source, plan.join[source]);
  const partner = source === "stored" ? `where ${name} have been` : name;
  const near = predicate === "dwithin" ? `within ${length(distance)} of` : (PREDICATES.find(([name]) => name === predicate)?.[1] ?? predicate);
  return `${near} ${partner}${timesText(plan)}${awayText(plan, titleOf)}${within}`;
}

/** Say what an area with a shape is: "in a circle of 5 km", "in a polygon"; nothing for a box. */
export function shapeText(area) {
  const form = formOf(area);
  if (form === "circle") return `in a circle of ${length(area.circle.radius_m)}`;
  if (form === "corridor") return `in a corridor of ${length(area.corridor.width_m)}`;
  return form ? (polygonsOf(area).length === 1 ? "in a polygon" : `in ${count(polygonsOf(area).length)} polygons`) : "";
}

/** Return an area in square metres as text, in squares of the unit of lengths: "12.3 km²". */
export function square(squareM) {
  const { long: [symbol, size], short: [shortSymbol, shortSize], shortM } = units();
  const [unit, metres] = squareM < shortM ** 2 ? [shortSymbol, shortSize] : [symbol, size];
  const value = squareM / metres ** 2;
  return `${number(value, value < 100 ? 1 : 0)}\u00a0${unit}²`;
}

function awayText({ away_from: away }, titleOf) {
  return away ? `, more than ${length(away.distance)} from ${titleOf("layer", away.layer)}` : "";
}

function atMost(metres) {
  return metres ? `, at most ${length(metres)} away` : "";
}

function aroundText({ radius, half_widths: widths }, focus) {
  if (radius) return `within ${length(radius)} of ${focus}`;
  if (!widths) return `in a polygon around ${focus}`;
  const sides = [0, 1].map((axis) => (widths[axis] ? length(2 * widths[axis]) : "any")).join(" \u00d7 ");
  return `in ${sides} around ${focus}`;
}

// The engine's reasons in words, by sign.
const REASON_TEXT = {
  moved: ["moved out", "moved", "moved in"],
  filtered: ["no longer matches the filter", "matches the filter", "now matches the filter"],
  partner_moved: ["partner moved away", "partner moved", "partner came near"],
  partner_filtered: ["partner no longer matches the filter", "partner matches the filter", "partner now matches the filter"],
  focus_moved: ["left behind by the centre", "the centre moved", "reached by the centre"],
  passed: [gettext("passed the closest point"), "", ""],
  others_moved: ["others are nearer", "others moved", "others are no longer nearer"],
  registered: ["left", "inside", "already inside"],
  edited: ["left by the edit", "inside", "inside after the edit"],
  cancelled: ["query ended", "query ended", "query ended"],
  failed: ["the query failed", "the query failed", "the query failed"],
  expired: ["no recent report", "reported", "reported again"],
  handoff: ["handed over", "handed over", "handed over"],
  dropped: ["stream removed", "stream removed", "stream removed"],
  snapshot: ["gone while catching up", "inside", "found while catching up"],
};

/** Why a tuple was produced, in words. */
export function reason(name, sign) {
  return REASON_TEXT[name]?.[sign + 1] ?? name;
}

const TIME_FIELDS = {
  window_s: "windowS",
  start_s: "windowS",
  slide_s: "slideS",
  lower_s: "beforeS",
  upper_s: "beforeS",
  bin_s: "beforeS",
  lateness_s: "latenessS",
  idle_s: "latenessS",
  within_s: "withinMin",
  for_s: "forMin",
  gap_s: "forMin",
};

/** The field of the query form that a server's error is about, or null for the form as a whole. */
export function errorField(code, message) {
  const text = `${code} ${message}`.toLowerCase();
  if (/got the unknown/.test(text)) return "plan"; // the message names all keys that there are
  if (/^\w* ((an )?area|target)\b/.test(text) || /report outside needs/.test(text)) return "box";
  if (/\bjoin: where/.test(text)) return "partnerWhere";
  if (/\bwhere:/.test(text)) return "where"; // before the rules below: the message quotes the user's text, which may have their words
  if (/\baway_from\b/.test(text)) return "away";
  const time = /\b(\w+_s) must/.exec(text)?.[1];
  if (time in TIME_FIELDS) return TIME_FIELDS[time];
  if (/\bthresholds?\b/.test(text)) return "thresholds";
  if (/\baggregate\b/.test(text)) return "aggregate";
  if (/\bmax_distance\b/.test(text)) return "maxDistance";
  if (/\bk must\b/.test(text)) return "k";
  if (/radius|half_widths|polygon/.test(text)) return "shape";
  if (/\baround\b/.test(text)) return "focus";
  if (/\bdistance\b/.test(text)) return "distance";
  if (/\bjoin\b|predicate|\blayer\b/.test(text)) return "partner";
  if (/\bwhere\b|filter|cql/.test(text)) return "where";
  if (/longitude|latitude|\barea\b|\bcompare\b|\blo\b|\bhi\b|rectangle/.test(text)) return "box";
  if (/\bname\b/.test(text) && !/stream/.test(text)) return "name";
  return /stream/.test(text) ? "stream" : null;
}
