import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { apart, columnsOf, readFrame } from "../../static/js/store/frames.js";

// The vendored build is a classic script, as the page loads it.
const Arrow = {};
new Function(
  "exports",
  "module",
  readFileSync(new URL("../../static/vendor/apache-arrow/Arrow.esnext.min.js", import.meta.url)),
)(Arrow, {});

// The columns that the page reads of the frames which streaming/results.py makes.
function frame(head, batches, joined = false) {
  const { Field, FixedSizeList, Float64, Int32, Int64, Int8, Utf8, Schema } = Arrow;
  const schema = new Schema(
    [
      new Field("query", new Int64()),
      new Field("sign", new Int8()),
      new Field("reason", new Int8()),
      new Field("key", new Utf8()),
      new Field("time_us", new Int64()),
      new Field("bounds", new FixedSizeList(6, new Field("item", new Float64(), true))),
      new Field("properties", new Utf8(), true),
      ...(joined
        ? [
            new Field("partner", new Utf8(), true),
            new Field("partner_properties", new Utf8(), true),
            new Field("distance", new Float64(), true),
            new Field("rank", new Int32(), true),
            new Field("partner_time_us", new Int64(), true),
            new Field("partner_bounds", new FixedSizeList(6, new Field("item", new Float64(), true)), true),
            new Field("window_us", new Int64(), true),
          ]
        : []),
    ],
    new Map([["lookout", JSON.stringify(head)]]),
  );
  const parts = batches.map((rows) => {
    const column = (name, type, read) => Arrow.vectorFromArray(rows.map(read), type).data[0];
    const children = [
      column("query", new Int64(), () => 7n),
      column("sign", new Int8(), (row) => row.sign),
      column("reason", new Int8(), (row) => row.reason),
      column("key", new Utf8(), (row) => row.key),
      column("time_us", new Int64(), (row) => row.time_us),
      column("bounds", schema.fields[5].type, (row) => row.bounds),
      column("properties", new Utf8(), (row) => row.properties),
      ...(joined
        ? [
            column("partner", new Utf8(), (row) => row.partner ?? null),
            column("partner_properties", new Utf8(), (row) => row.partner_properties ?? null),
            column("distance", new Float64(), (row) => row.distance ?? null),
            column("rank", new Int32(), (row) => row.rank ?? null),
            column("partner_time_us", new Int64(), (row) => row.partner_time_us ?? null),
            column("partner_bounds", schema.fields[5].type, (row) => row.partner_bounds ?? null),
            column("window_us", new Int64(), (row) => row.window_us ?? null),
          ]
        : []),
    ];
    return new Arrow.RecordBatch(
      schema,
      Arrow.makeData({ type: new Arrow.Struct(schema.fields), length: rows.length, children }),
    );
  });
  const bytes = Arrow.tableToIPC(new Arrow.Table(schema, parts), "stream");
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}

const row = (key, more = {}) => ({
  sign: 1,
  reason: 4,
  key,
  time_us: 1_700_000_000_000_001n,
  bounds: [10, 60, -Infinity, 12, 62, Infinity],
  properties: '{"a":1}',
  ...more,
});

test("a frame that the server's own code made is read as it was meant", () => {
  // results.frame({"type": "answer.change", "query": 7, "batch": 12, "lag_ms": 240}, rows) with two rows.
  const bytes = readFileSync(new URL("./answer-change.arrow", import.meta.url));
  const message = readFrame(Arrow, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  const { rows, ...head } = message;
  assert.deepEqual(head, { type: "answer.change", query: 7, batch: 12, lag_ms: 240 });
  assert.deepEqual(
    [rows.keys, [...rows.sign], rows.reason],
    [
      ["230123456", "\u00c5land"],
      [1, -1],
      ["moved", "expired"],
    ],
  );
  assert.deepEqual(
    [[...rows.lon], [...rows.lat], [...rows.alt]],
    [
      [24.5, -179.5],
      [60.25, 10],
      [NaN, 10668],
    ],
  );
  assert.deepEqual([...rows.timeMs], [1_700_000_000_000, 1_700_000_001_000.5]);
  assert.deepEqual(JSON.parse(rows.properties[0]), { course_deg: 90.5 });
});

test("a joined frame that the server's own code made is read as the changes of each answer", () => {
  // The second of two results.frames({"type": "answer.changes", ...}, rows): two rows of query 7, one of a view.
  const bytes = readFileSync(new URL("./answer-changes.arrow", import.meta.url));
  const messages = apart(readFrame(Arrow, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)));
  const heads = messages.map(({ rows, ...head }) => head);
  const head = { type: "answer.change", epoch: "e", batch: 12, lag_ms: 240 };
  assert.deepEqual(heads, [
    { ...head, query: 7 },
    { ...head, query: 2 ** 40 + 3 },
  ]);
  const [one, other] = messages.map(({ rows }) => rows);
  assert.deepEqual(
    [one.length, one.keys, [...one.sign], one.reason],
    [2, ["230123456", "\u00c5land"], [1, -1], ["moved", "expired"]],
  );
  assert.deepEqual(
    [[...one.lon], [...one.lat], [...one.alt]],
    [
      [24.5, -179.5],
      [60.25, 10],
      [NaN, 10668],
    ],
  );
  assert.deepEqual(
    [other.length, other.keys, [...other.lon], other.partners, other.ranks],
    [1, ["c"], [1], null, null],
  );
  assert.ok(other.sign instanceof Int8Array && other.timeMs instanceof Float64Array);
});

test("joined changes with partners and ranks are cut with them", () => {
  const rows = [row("a", { rank: 1, distance: 5 }), row("b", { partner: "x", partner_properties: "{}" })];
  const [{ rows: read }] = apart(readFrame(Arrow, frame({ type: "answer.changes" }, [rows], true)));
  assert.deepEqual(
    [read.keys, [...read.ranks], [...read.distances]],
    [
      ["a", "b"],
      [1, 0],
      [5, NaN],
    ],
  );
  assert.deepEqual(
    read.partners.map((partner) => partner?.key),
    [undefined, "x"],
  );
});

test("a message that is not joined is left as it is", () => {
  const message = { type: "answer.change", query: 7 };
  assert.deepEqual(apart(message), [message]);
});

test("a binary frame gives its head and its columns", () => {
  const message = readFrame(Arrow, frame({ type: "answer.change", query: 7 }, [[row("a"), row("bc", { sign: -1 })]]));
  assert.deepEqual([message.type, message.query, message.rows.length], ["answer.change", 7, 2]);
  const { rows } = message;
  assert.deepEqual(
    [[...rows.sign], rows.reason, rows.keys],
    [
      [1, -1],
      ["expired", "expired"],
      ["a", "bc"],
    ],
  );
  assert.deepEqual([rows.lon[0], rows.lat[1], rows.alt[0]], [11, 61, NaN]);
  assert.equal(rows.timeMs[0], 1_700_000_000_000.001);
});

test("names beyond ASCII and missing properties survive", () => {
  const { rows } = readFrame(Arrow, frame({}, [[row("Åland"), row("東京", { properties: null }), row("c")]]));
  assert.deepEqual(rows.keys, ["Åland", "東京", "c"]);
  assert.deepEqual(rows.properties, ['{"a":1}', "", '{"a":1}']);
});

test("a frame of several batches, or of none, is one set of columns", () => {
  assert.deepEqual(readFrame(Arrow, frame({}, [[row("a")], [row("b"), row("c")]])).rows.keys, ["a", "b", "c"]);
  assert.equal(readFrame(Arrow, frame({}, [])).rows.length, 0);
});

test("JSON rows give the same columns", () => {
  const json = {
    sign: "-",
    key: "a",
    time_us: 5000,
    lon: null,
    lat: 3,
    bounds: [null, 3, 100, null, 3, 200],
    reason: "moved",
    properties: { a: 1 },
  };
  const rows = columnsOf([json]);
  assert.deepEqual(
    [rows.sign[0], rows.lon[0], rows.lat[0], rows.alt[0], rows.properties[0]],
    [-1, NaN, 3, 150, '{"a":1}'],
  );
});

test("a join's rows carry their partners, those of a range query none", () => {
  const near = row("a", { partner: "X", partner_properties: '{"name":"Forest"}', distance: 4.5 });
  const inside = row("b", { partner: "", partner_properties: null });
  const { rows } = readFrame(Arrow, frame({}, [[near], [inside, row("c")]], true));
  assert.deepEqual(rows.partners, [
    { key: "X", properties: '{"name":"Forest"}', distance: 4.5 },
    { key: "", properties: "", distance: NaN },
    null,
  ]);
  assert.equal(readFrame(Arrow, frame({}, [[row("a")]], true)).rows.partners, null);
  assert.equal(readFrame(Arrow, frame({}, [[row("a")]])).rows.partners, null);
});

test("JSON rows give the same partners", () => {
  const json = {
    sign: "+",
    key: "a",
    time_us: 1,
    lon: 1,
    lat: 2,
    reason: "moved",
    partner: { key: "X", properties: { a: 1 }, distance: null },
  };
  assert.deepEqual(columnsOf([json, { ...json, partner: undefined }]).partners, [
    { key: "X", properties: '{"a":1}', distance: NaN },
    null,
  ]);
  assert.equal(columnsOf([{ ...json, partner: undefined }]).partners, null);
});

test("a pair of a closest approach carries where and when the two will be closest", () => {
  const closest = {
    time_us: 5_000_000,
    after_s: 240,
    places: [
      [1, 2],
      [3, 4],
    ],
  };
  const paired = {
    sign: "+",
    reason: "moved",
    key: "a",
    time_us: 0,
    lon: 0,
    lat: 0,
    partner: { key: "b", properties: {}, distance: 500 },
    closest,
  };
  const { partners } = columnsOf([paired, { ...paired, closest: undefined }]);
  assert.deepEqual(partners[0].closest, {
    timeMs: 5000,
    afterS: 240,
    places: [
      [1, 2],
      [3, 4],
    ],
  });
  assert.equal(partners[1].closest, undefined);
});

test("a told pair carries its partner's report and its window", () => {
  const bounds = [10, 60, -Infinity, 12, 62, Infinity];
  const report = { partner: "X", partner_properties: "{}", distance: 4.5, partner_time_us: 7000n };
  const rows = [
    row("a"),
    row("b", { ...report, partner_bounds: bounds, window_us: 5000n }),
    row("c", { ...report, partner_bounds: [1, 2, 0, 1, 2, 0] }),
  ];
  const told = { key: "X", properties: "{}", distance: 4.5, timeMs: 7, sinceMs: null, untilMs: null };
  const wanted = [
    { ...told, lon: 11, lat: 61, windowMs: 5 },
    { ...told, lon: 1, lat: 2, windowMs: null },
  ];
  assert.deepEqual(readFrame(Arrow, frame({}, [rows], true)).rows.partners, [null, ...wanted]);
  assert.deepEqual(readFrame(Arrow, frame({}, [rows.slice(0, 1), rows.slice(1)], true)).rows.partners, [
    null,
    ...wanted,
  ]);
  const json = { sign: "+", key: "b", time_us: 1, lon: 1, lat: 2, reason: "moved" };
  const partner = { key: "X", properties: {}, distance: 4.5, time_us: 7000 };
  const [windowed, timed] = [
    { ...partner, bounds: [10, 60, null, 12, 62, null] },
    { ...partner, bounds: [1, 2, 0, 1, 2, 0] },
  ];
  assert.deepEqual(
    columnsOf([
      { ...json, partner: windowed, window_us: 5000 },
      { ...json, partner: timed },
    ]).partners,
    wanted,
  );
});

test("neighbours carry their ranks and distances, and the place of a query its reach", () => {
  const rows = [
    row("a", { rank: 1, distance: 4.5 }),
    row("b", { rank: 12, distance: 90 }),
    row("focus", { sign: 2, distance: null }),
  ];
  const read = readFrame(Arrow, frame({}, [rows.slice(0, 2), rows.slice(2)], true)).rows;
  const told = { lon: 1, lat: 2, time_us: 1, reason: "moved" };
  const json = columnsOf([
    { ...told, sign: "+", key: "a", rank: 1, distance: 4.5 },
    { ...told, sign: "~", key: "b", rank: 12, distance: 90 },
    { ...told, sign: "@", key: "focus", distance: null },
  ]);
  for (const { ranks, distances, sign } of [read, json]) {
    assert.deepEqual([[...ranks], [...distances], sign[2]], [[1, 12, 0], [4.5, 90, NaN], 2]);
  }
  const plain = readFrame(Arrow, frame({}, [[row("a")]], true)).rows;
  assert.deepEqual([plain.ranks, plain.distances], [null, null]);
  assert.deepEqual([columnsOf([told]).ranks, columnsOf([told]).distances], [null, null]);
});
