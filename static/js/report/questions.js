// What a report is asked, and how its answer reads: parameters, columns, sorting, words. Pure.

import { count, length, place, utcTime } from "../format.js";
import { instantOf, spanOf } from "../history.js";

/** The reports by name: what the form calls them, and what one row is. */
export const REPORTS = {
  objects: ["Objects", "object"],
  visits: ["Visits", "visit"],
  days: ["Objects by day", "row"],
  stops: ["Stops", "stop"],
};
/** The measures that a chart of days shows. */
export const MEASURES = { objects: "Objects", visits: "Visits", dwell_s: "Dwell", distance_m: "Distance", stops: "Stops", stopped_s: "Time stopped" };
/** The columns of the tables, in their order: title, and how a value reads. */
const WHEN = (text) => utcTime(Date.parse(text)).replace(" UTC", "");
const COLUMN = {
  key: ["Object", String],
  day: ["Day", String],
  dwell_s: ["Dwell", duration],
  visits: ["Visits", count],
  entries: ["Entries", count],
  exits: ["Exits", count],
  distance_m: ["Distance", length],
  jumps: ["Jumps", count],
  stops: ["Stops", count],
  stopped_s: ["Stopped", duration],
  fixes: ["Fixes", count],
  first: ["First (UTC)", WHEN],
  last: ["Last (UTC)", WHEN],
  begin: ["Begin (UTC)", WHEN],
  end: ["End (UTC)", WHEN],
  began: ["Began by", String],
  ended: ["Ended by", String],
  lon: ["Place", (lon, { lat }) => place(lon, lat)],
};
const COLUMNS = {
  objects: ["key", "dwell_s", "visits", "entries", "exits", "distance_m", "stops", "stopped_s", "first", "last", "fixes", "jumps"],
  visits: ["key", "begin", "end", "dwell_s", "distance_m", "began", "ended", "fixes", "jumps"],
  days: ["day", "key", "dwell_s", "visits", "entries", "exits", "distance_m", "stops", "stopped_s", "jumps"],
  stops: ["key", "begin", "end", "stopped_s", "lon", "fixes"],
};
const AROUND_MS = 600_000; // so much of the way before and after a visit or a stop is drawn, too

/** Return the columns of a report as `[name, title, words]`, with `words(value, row)`. */
export function columnsOf(report) {
  return COLUMNS[report].map((name) => [name, ...COLUMN[name]]);
}

/** A span of time: "45 s", "12 min", "3 h 5 min", "2 d 7 h". */
export function duration(s) {
  if (s < 59.5) return `${Math.round(s)} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(s / 3600);
  return `${count(Math.floor(hours / 24))} d ${hours % 24} h`;
}

/** Return how the value of a measure reads. */
export function measured(measure, value) {
  if (measure.endsWith("_s")) return duration(value);
  return measure.endsWith("_m") ? length(value) : count(Math.round(value));
}

/** Return what is wrong with a question, by field; an empty object if nothing is. */
export function faultsOf({ stream, where, area, span, from, to, zone, terms }) {
  const faults = {};
  if (!stream) faults.stream = "Choose a stored stream.";
  if (!area) faults.where = where === "feature" ? "Select a polygon of a layer on the map." : where === "query" ? "Choose a query with an area." : "Draw the area on the map.";
  if (span === "custom" && !(from && to)) faults.span = "Type a beginning and an end.";
  else if (span === "custom" && instantOf(from, zone) > instantOf(to, zone)) faults.span = `The beginning must not be later than the end; got ${from} > ${to}.`;
  const wrong = Object.values(terms).find((value) => value !== null && !(value > 0));
  if (wrong !== undefined) faults.terms = `Each term must be a number above 0; got ${wrong}.`;
  return faults;
}

/** Return the parameters of `GET /reports/<stream>`, given fields without faults; `nowMs` is the stream's own time. */
export function parametersOf({ report, area, zone, zoneName, terms, ...fields }, nowMs) {
  const { from, to } = spanOf({ ...fields, zone }, nowMs);
  const given = { report, from: new Date(from).toISOString(), to: new Date(to ?? nowMs).toISOString(), zone: zone === "utc" ? "UTC" : zoneName, ...area };
  for (const [name, value] of Object.entries(terms)) if (value !== null) given[name] = String(value);
  return given;
}

/** Return a place, as `SketchAreas` has it, as parameters: `{bbox}`, `{polygon}`, or `{}` for everywhere. */
export function areaOf({ area, polygon }) {
  if (polygon) return { polygon: JSON.stringify({ type: "Polygon", coordinates: [[...polygon, polygon[0]]] }) };
  return area ? { bbox: [...area.lo, ...area.hi].join(",") } : {};
}

/** Return the parameters that ask for the way of a row's object, with some of what was before and after a visit or a stop. */
export function wayOf(parameters, row) {
  const { format: _format, ...rest } = parameters;
  const [from, to] = [parameters.from, parameters.to].map(Date.parse);
  const [begin, end] = row.begin ? [Date.parse(row.begin) - AROUND_MS, Date.parse(row.end) + AROUND_MS] : [from, to];
  const ends = { from: new Date(Math.max(begin, from)).toISOString(), to: new Date(Math.min(end, to)).toISOString() };
  return { ...rest, ...ends, report: "way", key: row.key };
}

/** Return rows in the order of a column; equal ones keep their order. */
export function sorted(rows, column, descending) {
  const compare = ([a], [b]) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
  const pairs = rows.map((row) => [row[column], row]).sort((a, b) => (descending ? compare(b, a) : compare(a, b)));
  return pairs.map(([, row]) => row);
}

/** Describe an answer in words: "37 visits of 12 objects, from 1,204 fixes." */
export function summary({ report, total, counts }) {
  if (total === 0) return counts.objects > 0 ? `${plural(counts.objects, "object")} came, but there is no ${REPORTS[report][1]}.` : "Nothing was there in this time.";
  const of = report === "objects" ? "" : ` of ${plural(counts.objects, "object")}`;
  return `${plural(total, REPORTS[report][1])}${of}, from ${plural(counts.elements, "fix", "fixes")}`;
}

/** Say what an answer leaves out, in sentences; empty if it leaves out nothing. */
export function omissions({ counts, rows, total, truncated }) {
  const { jumps, repeated, unplaced } = counts;
  const said = [];
  if (truncated) said.push(`There are ${count(total)} rows, of which the first ${count(rows.length)} were sent; the CSV file has all.`);
  if (jumps) said.push(`${plural(jumps, "jump is", "jumps are")} too fast to be counted as distance.`);
  if (repeated) said.push(`${plural(repeated, "element repeats", "elements repeat")} a time and ${repeated === 1 ? "is" : "are"} left out.`);
  if (unplaced) said.push(`${plural(unplaced, "element has", "elements have")} no place and ${unplaced === 1 ? "is" : "are"} left out.`);
  return said.join(" ");
}

function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Return the rows of a way as `HistoryLayer` draws them. */
export function drawnRows(rows) {
  return rows.map(({ key, time, lon, lat, inside }) => ({ key, time, lo: [lon, lat], hi: [lon, lat], geometry: null, properties: { inside } }));
}
