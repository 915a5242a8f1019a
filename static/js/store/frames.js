// Reads answers into columns, from binary frames (Arrow IPC) and from JSON rows.

import { middle } from "../geometry.js";
import { DETAILS } from "../kinds/details.js";
import { inMs, middles } from "./columns.js";

const HEAD = "lookout";

/** Names of the codes in the column `reason`, as streaming/results/__init__.py numbers them. */
export const REASONS = [
  "moved",
  "registered",
  "edited",
  "cancelled",
  "expired",
  "handoff",
  "dropped",
  "snapshot",
  "filtered",
  "failed",
  "partner_moved",
  "partner_filtered",
  "focus_moved",
  "others_moved",
  "passed",
];

/** The sign of a row that says where the query itself is. */
export const PLACED = 2;

const SIGN_OF = { "-": -1, "~": 0, "+": 1, "@": PLACED };

/** Return the messages of the single answers in a message `answer.changes`; of any other message, the message alone. */
export function apart(message) {
  if (message.type !== "answer.changes") return [message];
  const { changes, ...head } = message;
  return changes.map(({ query, rows }) => ({
    ...head,
    type: "answer.change",
    query,
    rows: Array.isArray(rows) ? columnsOf(rows) : rows,
  }));
}

/**
 * Read a binary frame into `{type, query, ..., rows}`. The rows are the columns
 * `{length, sign, reason, keys, timeMs, lon, lat, alt, properties, partners, ranks, distances}`. If no row has a partner,
 * `partners` is null; otherwise it holds `{key, properties, distance}`, or null, for each row, with what kinds of queries add
 * (`DETAILS` of kinds/details.js). It is the same with `ranks`
 * (0 for none), `distances` (NaN for none), and `fromMs` and `toMs`, the times of the reports between which an entry or exit was. A joined frame has `changes`, a list of `{query, rows}`, in place of `rows`.
 */
export function readFrame(Arrow, buffer) {
  const table = Arrow.tableFromIPC(new Uint8Array(buffer));
  const head = headOf(table);
  const batches = table.batches.filter((batch) => batch.numRows > 0);
  const parts = batches.map(batchColumns);
  if (head.type === "answer.changes")
    return { ...head, changes: batches.flatMap((batch, part) => byQuery(batch, parts[part])) };
  return { ...head, rows: parts.length === 1 ? parts[0] : joined(parts) };
}

/** Return the head of a binary frame, given its table. */
export function headOf(table) {
  return JSON.parse(table.schema.metadata.get(HEAD));
}

/** Cut columns that are sorted by query into a list of `{query, rows}`. */
function byQuery(batch, rows) {
  const queries = batch.getChild("query").data[0].values.subarray(0, rows.length);
  const changes = [];
  for (let start = 0, end = 1; end <= rows.length; end++) {
    if (end < rows.length && queries[end] === queries[start]) continue;
    const cut = ([name, column]) => [name, column?.slice?.(start, end) ?? null];
    changes.push({
      query: Number(queries[start]),
      rows: { ...Object.fromEntries(Object.entries(rows).map(cut)), length: end - start },
    });
    start = end;
  }
  return changes;
}

/** Turn the rows of a JSON frame into columns. */
export function columnsOf(rows) {
  const column = (read) => Float64Array.from(rows, read);
  return {
    length: rows.length,
    sign: Int8Array.from(rows, (row) => SIGN_OF[row.sign]),
    reason: rows.map((row) => row.reason),
    keys: rows.map((row) => row.key),
    timeMs: column((row) => row.time_us / 1000),
    lon: column((row) => row.lon ?? NaN),
    lat: column((row) => row.lat ?? NaN),
    alt: column((row) => middle(row.bounds?.[2] ?? -Infinity, row.bounds?.[5] ?? Infinity)),
    properties: rows.map((row) => JSON.stringify(row.properties ?? {})),
    partners: rows.some((row) => row.partner) ? rows.map(jsonPartner) : null,
    ranks: given(rows, "rank") ? Int32Array.from(rows, (row) => row.rank ?? 0) : null,
    distances: given(rows, "distance") ? column((row) => row.distance ?? NaN) : null,
    fromMs: given(rows, "from_us") ? column((row) => inMs(row.from_us) ?? NaN) : null,
    toMs: given(rows, "to_us") ? column((row) => inMs(row.to_us) ?? NaN) : null,
  };
}

/** Return a batch of rows as the columns of `readFrame`. */
export function batchColumns(batch) {
  const places = batch.getChild("bounds");
  const codes = batch.getChild("reason").data[0].values;
  return {
    length: batch.numRows,
    sign: batch.getChild("sign").data[0].values.slice(0, batch.numRows),
    reason: Array.from({ length: batch.numRows }, (_, row) => REASONS[codes[row]] ?? String(codes[row])),
    keys: strings(batch.getChild("key")),
    timeMs: Float64Array.from(
      batch.getChild("time_us").data[0].values.subarray(0, batch.numRows),
      (t) => Number(t) / 1000,
    ),
    lon: middles(places, 0),
    lat: middles(places, 1),
    alt: places.type.listSize > 4 ? middles(places, 2) : new Float64Array(batch.numRows).fill(NaN),
    properties: strings(batch.getChild("properties")),
    partners: partnersOf(batch),
    ranks: optional(batch, "rank", Int32Array, 0),
    distances: optional(batch, "distance", Float64Array, NaN),
    fromMs: times(batch, "from_us"),
    toMs: times(batch, "to_us"),
  };
}

function given(rows, name) {
  return rows.some((row) => (row[name] ?? null) !== null);
}

/** Return a column of numbers, with `missing` where a row has none; null if no row has one. */
function optional(batch, name, Type, missing) {
  const vector = batch.getChild(name);
  if (!vector || vector.nullCount === batch.numRows) return null;
  return Type.from({ length: batch.numRows }, (_, row) => vector.get(row) ?? missing);
}

/** Return a column of times, in ms, NaN where a row has none; null if no row has one. */
function times(batch, name) {
  const vector = batch.getChild(name);
  if (!vector || vector.nullCount === batch.numRows) return null;
  return Float64Array.from({ length: batch.numRows }, (_, row) => inMs(vector.get(row)) ?? NaN);
}

function jsonPartner({ partner, ...row }) {
  if (!partner) return null;
  return {
    key: partner.key,
    properties: JSON.stringify(partner.properties ?? {}),
    distance: partner.distance ?? NaN,
    ...Object.assign({}, ...DETAILS.map(({ ofJson }) => ofJson({ partner, ...row }))),
  };
}

/** The partners of a join's rows; null for a range query, whose rows have none. */
function partnersOf(batch) {
  const keys = batch.getChild("partner");
  if (!keys || keys.nullCount === batch.numRows) return null;
  const [properties, distance] = [batch.getChild("partner_properties"), batch.getChild("distance")];
  const details = DETAILS.flatMap(({ ofBatch }) => ofBatch(batch) ?? []);
  return Array.from({ length: batch.numRows }, (_, row) => {
    const key = keys.get(row);
    return key === null
      ? null
      : {
          key,
          properties: properties?.get(row) ?? "",
          distance: distance?.get(row) ?? NaN,
          ...Object.assign({}, ...details.map((detail) => detail(row))),
        };
  });
}

/** Return the strings of a column. If all are ASCII, decode all bytes at once: offsets of bytes and of characters then agree. */
function strings(vector) {
  const { values, valueOffsets, length, nullCount } = vector.data[0];
  const first = Number(valueOffsets[0]);
  const bytes = values.subarray(first, Number(valueOffsets[length]));
  const text = new TextDecoder().decode(bytes);
  if (text.length !== bytes.length || nullCount > 0) return Array.from({ length }, (_, row) => vector.get(row) ?? "");
  return Array.from({ length }, (_, row) =>
    text.slice(Number(valueOffsets[row]) - first, Number(valueOffsets[row + 1]) - first),
  );
}

function joined(parts) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const numbers = (name, Type, missing = 0) => {
    const out = new Type(length).fill(missing);
    let at = 0;
    for (const part of parts) {
      if (part[name]) out.set(part[name], at);
      at += part.length;
    }
    return out;
  };
  const some = (name) => parts.some((part) => part[name]);
  return {
    length,
    sign: numbers("sign", Int8Array),
    reason: parts.flatMap((part) => part.reason),
    keys: parts.flatMap((part) => part.keys),
    timeMs: numbers("timeMs", Float64Array),
    lon: numbers("lon", Float64Array),
    lat: numbers("lat", Float64Array),
    alt: numbers("alt", Float64Array),
    properties: parts.flatMap((part) => part.properties),
    partners: some("partners") ? parts.flatMap((part) => part.partners ?? new Array(part.length).fill(null)) : null,
    ranks: some("ranks") ? numbers("ranks", Int32Array) : null,
    distances: some("distances") ? numbers("distances", Float64Array, NaN) : null,
    fromMs: some("fromMs") ? numbers("fromMs", Float64Array, NaN) : null,
    toMs: some("toMs") ? numbers("toMs", Float64Array, NaN) : null,
  };
}
