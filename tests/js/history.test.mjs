import assert from "node:assert/strict";
import { test } from "node:test";

import { localTime, utcSpan } from "../../static/js/format.js";
import {
  boxAround,
  chosen,
  faultsOf,
  formTime,
  instantOf,
  missing,
  ofOneDay,
  partnersOf,
  propertyNames,
  questionOf,
  rowTime,
  spanOf,
  summary,
  tableOf,
  tracksOf,
} from "../../static/js/history/history.js";

const NOON = Date.UTC(2026, 10, 21, 12);
const HOUR = 3_600_000;
const BOX = { lo: [24, 59], hi: [26, 60] };

function stored(key, lon, lat, atMs = NOON, more = {}) {
  return {
    key,
    time: new Date(atMs).toISOString(),
    lo: [lon, lat, null],
    hi: [lon, lat, null],
    geometry: null,
    properties: {},
    ...more,
  };
}

const fields = (more) => ({
  table: { stored: "ships" },
  key: "",
  join: false,
  where: "view",
  box: BOX,
  span: "hour",
  zone: "utc",
  limit: 1000,
  ...more,
});

test("a table is named by its kind and name", () => {
  assert.deepEqual(
    [tableOf("stored:ships"), tableOf("layer:a:b"), tableOf("")],
    [{ stored: "ships" }, { layer: "a:b" }, null],
  );
});

test("spans end now, are open, or as they are typed, in UTC or local time", () => {
  assert.deepEqual(spanOf({ span: "hour" }, NOON), { from: NOON - HOUR, to: null });
  assert.equal(spanOf({ span: "all" }, NOON), null);
  const typed = { span: "custom", from: "2026-11-21T10:00", to: "", zone: "utc" };
  assert.deepEqual(spanOf(typed, NOON), { from: NOON - 2 * HOUR, to: null });
  const local = instantOf("2026-11-21T10:00", "local");
  assert.equal(new Date(local).getHours(), 10);
  for (const zone of ["utc", "local"]) assert.equal(instantOf(formTime(NOON, zone), zone), NOON);
});

test("a question asks for the box and the span, open ends left out", () => {
  const span = { from: NOON - HOUR, to: null };
  assert.deepEqual(questionOf(fields({ span })), {
    type: "table.query",
    table: { stored: "ships" },
    limit: 1000,
    box: BOX,
    span: { from: "2026-11-21T11:00:00.000Z" },
  });
  assert.deepEqual(questionOf(fields({ span: null, box: null })), {
    type: "table.query",
    table: { stored: "ships" },
    limit: 1000,
  });
});

test("a question for a key asks for all of it, and one for pairs names both tables", () => {
  assert.deepEqual(questionOf(fields({ key: "a", span: null })), {
    type: "table.get",
    table: { stored: "ships" },
    key: "a",
    limit: 10_000,
  });
  const join = {
    join: true,
    partner: { layer: "zones" },
    predicate: "dwithin",
    distance: 50,
    span: null,
    box: null,
    key: "ignored",
  };
  assert.deepEqual(questionOf(fields(join)), {
    type: "table.join",
    left: { stored: "ships" },
    right: { layer: "zones" },
    predicate: "dwithin",
    distance: 50,
    limit: 1000,
  });
  assert.equal("distance" in questionOf(fields({ ...join, predicate: "within" })), false);
});

test("faults are told at their field, with the rule and the value", () => {
  assert.deepEqual(faultsOf(fields()), {});
  assert.deepEqual(
    Object.keys(faultsOf(fields({ table: null, where: "rectangle", box: null, join: true, partner: null }))),
    ["table", "partner", "box"],
  );
  assert.match(
    faultsOf(fields({ join: true, partner: {}, predicate: "dwithin", distance: NaN })).distance,
    /^Type a distance/,
  );
  const backwards = { span: "custom", from: "2026-11-21T10:00", to: "2026-11-21T09:00" };
  assert.match(faultsOf(fields(backwards)).span, /got 2026-11-21T10:00 > 2026-11-21T09:00/);
  assert.ok(faultsOf(fields({ span: "custom", from: "", to: "" })).span);
});

test("of a key's rows those in the box and the span are shown", () => {
  const rows = [
    stored("a", 25, 59.5),
    stored("a", 25, 59.5, NOON - 2 * HOUR),
    stored("a", 27, 59.5),
    stored("a", 25, 61),
  ];
  assert.deepEqual(chosen(rows, BOX, { from: NOON - HOUR, to: NOON }), [rows[0]]);
  assert.equal(chosen(rows, null, null).length, 4);
  const across = { lo: [179, -1], hi: [181, 1] };
  assert.equal(chosen([stored("a", -179.5, 0), stored("a", -178, 0)], across, null).length, 1);
  const feature = { ...stored("a", 25, 59.5), time: null };
  assert.deepEqual(chosen([feature], BOX, { from: NOON, to: null }), [feature]);
});

test("tracks join the places of a key in the order of time, and go the short way round", () => {
  const rows = [
    stored("a", 179, 0, NOON),
    stored("a", 179, 0, NOON + 1),
    stored("a", -179, 1, NOON + 2),
    stored("b", 5, 5),
    { ...stored("c", 1, 1), time: null },
  ];
  assert.deepEqual(
    [...tracksOf(rows)],
    [
      [
        "a",
        [
          [179, 0],
          [181, 1],
        ],
      ],
    ],
  );
});

test("the box around rows is the smaller one, and there is none around nothing", () => {
  assert.deepEqual(boxAround([stored("a", 179, 0), stored("a", -179, 1)]), { lo: [179, 0], hi: [181, 1] });
  assert.deepEqual(boxAround([stored("a", 24, 59), stored("b", 25, 60)]), { lo: [24, 59], hi: [25, 60] });
  assert.equal(boxAround([]), null);
});

test("an answer is told in words, and so is what is missing of it", () => {
  const rows = [stored("a", 1, 1), stored("a", 1, 1, NOON + HOUR), stored("b", 1, 1, NOON)];
  assert.equal(summary(rows), "3 rows of 2 keys, 2026-11-21 12:00:00 to 13:00:00 UTC");
  assert.equal(summary([{ ...stored("a", 1, 1), partner: { key: "z" } }]), "1 pair of 1 key, 2026-11-21 12:00:00 UTC");
  assert.equal(summary([{ ...stored("a", 1, 1), time: null }]), "1 row of 1 key");
  assert.match(summary([]), /Nothing/);
  assert.match(missing({ type: "table.query", limit: 1000 }, 1000), /more rows.*first 1,000 by key.*larger maximum/);
  assert.doesNotMatch(missing({ type: "table.join", limit: 10_000 }, 10_000), /larger maximum/);
  assert.match(missing({ type: "table.get", limit: 10_000 }, 3), /newest 10,000 rows/);
});

test("columns are the properties that most rows have", () => {
  const rows = [
    { properties: { a: 1 } },
    { properties: { a: 1, b: 2 } },
    { properties: null },
    { properties: { b: 1, c: 1, a: 0 } },
  ];
  assert.deepEqual(propertyNames(rows, 2), ["a", "b"]);
});

test("spans and local times read well", () => {
  assert.equal(utcSpan(NOON, NOON + 24 * HOUR), "2026-11-21 12:00:00 to 2026-11-22 12:00:00 UTC");
  assert.equal(localTime(NOON, "Europe/Helsinki"), "2026-11-21 14:00:00");
});

test("the day of times is left out where it is one, and partners are drawn once", () => {
  const pair = (key, more) =>
    stored("a", 1, 1, NOON, { partner: { key, time: new Date(NOON + HOUR).toISOString(), ...more } });
  assert.equal(ofOneDay([pair("x"), pair("y")]), true);
  assert.equal(ofOneDay([pair("x", { time: new Date(NOON + 24 * HOUR).toISOString() })]), false);
  assert.deepEqual(
    partnersOf([pair("x"), pair("x"), pair("y")]).map(({ key }) => key),
    ["x", "y"],
  );
  assert.equal(rowTime(stored("a", 1, 1), true), "12:00:00");
});
