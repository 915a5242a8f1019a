// What a report is asked, and how its answer reads: parameters, columns, sorting, words. Pure.

import { count, length, place, utcTime } from "../format.js";
import { instantOf, spanOf } from "../history/history.js";
import { filled, gettext, LOCALE, ngettext, pgettext } from "../i18n.js";

/** The reports by name: what the form calls them, how many rows there are, and that there are objects but no row. */
export const REPORTS = {
  objects: [
    gettext("Objects"),
    (n) => ngettext("%(count)s object", "%(count)s objects", n),
    (n) =>
      ngettext("%(count)s object came, but there is no object.", "%(count)s objects came, but there is no object.", n),
  ],
  visits: [
    gettext("Visits"),
    (n) => ngettext("%(count)s visit", "%(count)s visits", n),
    (n) =>
      ngettext("%(count)s object came, but there is no visit.", "%(count)s objects came, but there is no visit.", n),
  ],
  days: [
    gettext("Objects by day"),
    (n) => ngettext("%(count)s row", "%(count)s rows", n),
    (n) => ngettext("%(count)s object came, but there is no row.", "%(count)s objects came, but there is no row.", n),
  ],
  stops: [
    gettext("Stops"),
    (n) => ngettext("%(count)s stop", "%(count)s stops", n),
    (n) => ngettext("%(count)s object came, but there is no stop.", "%(count)s objects came, but there is no stop.", n),
  ],
};
/** The measures that a chart of days shows. */
export const MEASURES = {
  objects: gettext("Objects"),
  visits: gettext("Visits"),
  dwell_s: gettext("Dwell"),
  distance_m: pgettext("of a way", "Distance"),
  stops: gettext("Stops"),
  stopped_s: gettext("Time stopped"),
};
/** The columns of the tables, in their order: title, and how a value reads. */
const WHEN = (text) => utcTime(Date.parse(text)).replace(" UTC", "");
const ENDS = {
  entry: gettext("entry"),
  exit: gettext("exit"),
  first: gettext("first"),
  last: gettext("last"),
  gap: gettext("gap"),
};
const endText = (end) => ENDS[end] ?? String(end);
const COLUMN = {
  key: [gettext("Object"), String],
  day: [gettext("Day"), String],
  dwell_s: [gettext("Dwell"), duration],
  visits: [gettext("Visits"), count],
  entries: [gettext("Entries"), count],
  exits: [gettext("Exits"), count],
  distance_m: [pgettext("of a way", "Distance"), length],
  jumps: [gettext("Jumps"), count],
  stops: [gettext("Stops"), count],
  stopped_s: [gettext("Stopped"), duration],
  fixes: [gettext("Fixes"), count],
  first: [gettext("First (UTC)"), WHEN],
  last: [gettext("Last (UTC)"), WHEN],
  begin: [gettext("Begin (UTC)"), WHEN],
  end: [gettext("End (UTC)"), WHEN],
  began: [gettext("Began by"), endText],
  ended: [gettext("Ended by"), endText],
  lon: [gettext("Place"), (lon, { lat }) => place(lon, lat)],
};
const COLUMNS = {
  objects: [
    "key",
    "dwell_s",
    "visits",
    "entries",
    "exits",
    "distance_m",
    "stops",
    "stopped_s",
    "first",
    "last",
    "fixes",
    "jumps",
  ],
  visits: ["key", "begin", "end", "dwell_s", "distance_m", "began", "ended", "fixes", "jumps"],
  days: ["day", "key", "dwell_s", "visits", "entries", "exits", "distance_m", "stops", "stopped_s", "jumps"],
  stops: ["key", "begin", "end", "stopped_s", "lon", "fixes"],
};
const NO_AREA = {
  feature: gettext("Select a polygon of a layer on the map."),
  query: gettext("Choose a query with an area."),
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
  if (!stream) faults.stream = gettext("Choose a stored stream.");
  if (!area) faults.where = NO_AREA[where] ?? gettext("Draw the area on the map.");
  if (span === "custom" && !(from && to)) faults.span = gettext("Type a beginning and an end.");
  else if (span === "custom" && instantOf(from, zone) > instantOf(to, zone))
    faults.span = filled(gettext("The beginning must not be later than the end; got %(from)s > %(to)s."), { from, to });
  if (Object.values(terms).some((value) => value !== null && !(value > 0)))
    faults.terms = gettext("Each term must be a number above 0.");
  return faults;
}

/** Return the parameters of `GET /reports/<stream>`, given fields without faults; `nowMs` is the stream's own time. */
export function parametersOf({ report, area, zone, zoneName, terms, ...fields }, nowMs) {
  const { from, to } = spanOf({ ...fields, zone }, nowMs);
  const given = {
    report,
    from: new Date(from).toISOString(),
    to: new Date(to ?? nowMs).toISOString(),
    zone: zone === "utc" ? "UTC" : zoneName,
    ...area,
  };
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
  const compare = ([a], [b]) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), LOCALE, { numeric: true });
  const pairs = rows.map((row) => [row[column], row]).sort((a, b) => (descending ? compare(b, a) : compare(a, b)));
  return pairs.map(([, row]) => row);
}

/** Describe an answer in words: "37 visits of 12 objects, from 1,204 fixes." */
export function summary({ report, total, counts }) {
  const counted = (words, n) => filled(words(n), { count: count(n) });
  const [, rowsOf, none] = REPORTS[report];
  if (total === 0)
    return counts.objects > 0 ? counted(none, counts.objects) : gettext("Nothing was there in this time.");
  const rows = counted(rowsOf, total);
  const objects = counted(REPORTS.objects[1], counts.objects);
  const fixes = counted((n) => ngettext("%(count)s fix", "%(count)s fixes", n), counts.elements);
  return filled(
    report === "objects" ? gettext("%(rows)s, from %(fixes)s") : gettext("%(rows)s of %(objects)s, from %(fixes)s"),
    { rows, objects, fixes },
  );
}

/** Say what an answer leaves out, in sentences; empty if it leaves out nothing. */
export function omissions({ counts, rows, total, truncated }) {
  const { jumps, repeated, unplaced } = counts;
  const said = [];
  const say = (words, n) => said.push(filled(words, { count: count(n), sent: count(rows.length) }));
  if (truncated)
    say(gettext("There are %(count)s rows, of which the first %(sent)s were sent; the CSV file has all."), total);
  if (jumps)
    say(
      ngettext(
        "%(count)s jump is too fast to be counted as distance.",
        "%(count)s jumps are too fast to be counted as distance.",
        jumps,
      ),
      jumps,
    );
  if (repeated)
    say(
      ngettext(
        "%(count)s element repeats a time and is left out.",
        "%(count)s elements repeat a time and are left out.",
        repeated,
      ),
      repeated,
    );
  if (unplaced)
    say(
      ngettext(
        "%(count)s element has no place and is left out.",
        "%(count)s elements have no place and are left out.",
        unplaced,
      ),
      unplaced,
    );
  return said.join(" ");
}

/** Return the rows of a way as `HistoryLayer` draws them. */
export function drawnRows(rows) {
  return rows.map(({ key, time, lon, lat, inside }) => ({
    key,
    time,
    lo: [lon, lat],
    hi: [lon, lat],
    geometry: null,
    properties: { inside },
  }));
}
