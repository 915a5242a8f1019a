import assert from "node:assert/strict";
import { test } from "node:test";

import { createStore } from "../../static/js/store/store.js";
import { tableHash, tableOf } from "../../static/js/table/address.js";
import { aboutColumn, ALTITUDE, HEARD, KEY, LATITUDE, NAME, PLACE, STREAM } from "../../static/js/table/columns.js";
import { fromAddress, readCondition, toAddress } from "../../static/js/table/conditions.js";
import { csv, geoJson } from "../../static/js/table/export.js";
import { Sorter } from "../../static/js/table/order.js";
import { Ranks } from "../../static/js/table/ranks.js";
import { Rows } from "../../static/js/table/rows.js";
import { hasObjects, Members, readSource } from "../../static/js/table/sources.js";
import { rowAfter, rowsInView, scrolledTo } from "../../static/js/table/windowing.js";
import { chooseUnits } from "../../static/js/units.js";
import { formatHash, parseHash } from "../../static/js/url-state.js";
import { change, hello, NOW, row, SHIPS, snapshot, status } from "./helpers.mjs";

const BUSES = { name: "buses", title: "City buses", icon: "bus", enabled: true };
const VIEW = 2 ** 40;
const WORLD = { west: -180, south: -90, east: 180, north: 90 };

/** A table over a store with ships and buses, `{key: [lon, lat, properties, secondsAgo]}`. */
function tableOver(ships, buses = {}, bounds = WORLD) {
  const store = createStore();
  store.apply(hello(SHIPS, BUSES), NOW);
  store.apply({ type: "view.status", views: { ships: VIEW, buses: VIEW + 1 } }, NOW);
  const rows = (objects) =>
    Object.entries(objects).map(([key, [lon, lat, properties = {}, ago = 0]]) =>
      row("+", key, lon, lat, { properties, time_us: (NOW - 1000 * ago) * 1000 }),
    );
  store.apply(snapshot(VIEW, ...rows(ships)), NOW);
  store.apply(snapshot(VIEW + 1, ...rows(buses)), NOW);
  const watch = {
    all: () => [
      { stream: "ships", key: "a" },
      { stream: "ships", key: "far away" },
    ],
  };
  const table = new Rows({
    store,
    members: new Members({ store, bounds: () => bounds, shown: () => true, watch }),
    collator: new Intl.Collator("en"),
  });
  table.show([NAME, KEY, STREAM, HEARD, PLACE]);
  return { store, table };
}

const keys = ({ store, n, slots }) => Array.from(slots.subarray(0, n), (slot) => store.objects.keys[slot]);

function listed(table, source = { kind: "view" }) {
  table.refresh(source, NOW);
  return keys(table);
}

test("a sort orders numbers by size, then texts by collation, then what is missing, and is stable in both directions", () => {
  const values = [3, "b", null, -1, "B", 3, Infinity, -0, "a", 0, null, 1e-300, "é", -1e9];
  const { table } = tableOver(
    Object.fromEntries(
      values.map((value, i) => [`k${String(i).padStart(2, "0")}`, [0, 0, { v: value === Infinity ? 1e308 : value }]]),
    ),
  );
  table.show([KEY, "v"]);
  const order = () => listed(table).map((key) => values[Number(key.slice(1))]);
  table.sortBy(KEY, false);
  table.sortBy("v", false);
  assert.deepEqual(order(), [-1e9, -1, -0, 0, 1e-300, 3, 3, Infinity, "a", "b", "B", "é", null, null]);
  assert.deepEqual(listed(table).slice(-2), ["k02", "k10"]);
  table.sortBy("v");
  assert.equal(table.sorts[0].descending, true);
  assert.deepEqual(order(), ["é", "B", "b", "a", Infinity, 3, 3, 1e-300, -0, 0, -1, -1e9, null, null]);
  assert.deepEqual(
    listed(table).filter((key) => values[Number(key.slice(1))] === 3),
    ["k00", "k05"],
  );
});

test("rows that are equal in a column keep the order of the column that was sorted before", () => {
  const { table } = tableOver({
    a: [0, 0, { kind: "x", v: 1 }],
    b: [0, 0, { kind: "y", v: 2 }],
    c: [0, 0, { kind: "x", v: 3 }],
  });
  table.sortBy("v", true);
  table.sortBy("kind", false);
  assert.deepEqual(listed(table), ["c", "a", "b"]);
});

test("a radix sort agrees with a comparison sort on any floats", () => {
  const sorter = new Sorter();
  for (let n = 0; n < 3000; n = 2 * n + 1) {
    const numbers = Float64Array.from({ length: n }, (_, i) =>
      i % 7 === 0 ? NaN : (Math.random() - 0.5) * 10 ** Math.floor(40 * Math.random() - 20),
    );
    for (const descending of [false, true]) {
      const slots = Int32Array.from({ length: n }, (_, i) => i);
      sorter.sort(slots, n, { numberOf: (slot) => numbers[slot], rankOf: () => -1, descending });
      const rank = (i) => (Number.isNaN(numbers[i]) ? Infinity : descending ? -numbers[i] : numbers[i]);
      const expected = [...numbers.keys()].sort((a, b) => (rank(a) === rank(b) ? a - b : rank(a) - rank(b)));
      assert.deepEqual([...slots], expected);
    }
  }
});

test("numbers within texts are sorted as numbers", () => {
  const [ranks, texts] = [new Ranks(), ["Gate 10", "Gate 9", "Gate 2"]];
  ranks.learn(3, (i) => texts[i]);
  assert.deepEqual(
    [...texts].sort((a, b) => ranks.of(a) - ranks.of(b)),
    ["Gate 2", "Gate 9", "Gate 10"],
  );
});

test("ranks of texts follow the collation when texts come and go", () => {
  const ranks = new Ranks(new Intl.Collator("en"));
  for (let round = 0; round < 30; round++) {
    const texts = Array.from({ length: 200 }, () =>
      Math.random() < 0.1
        ? null
        : ["é", "E", "e", "z", "Ä"][Math.floor(5 * Math.random())] + Math.floor(100_000 * Math.random()),
    );
    ranks.learn(texts.length, (i) => texts[i]);
    const present = texts.filter((text) => text !== null);
    const sorted = [...present].sort((a, b) => ranks.of(a) - ranks.of(b));
    assert.deepEqual(
      sorted.map((text) => text),
      [...present].sort(new Intl.Collator("en").compare),
    );
  }
  assert.ok(ranks.sorted.length < 2000, "texts that no row has are forgotten");
});

test("values follow the objects: new reports, new objects in old slots, and columns that are chosen later", () => {
  const { store, table } = tableOver({ a: [0, 0, { v: 1, name: "Anna" }], b: [0, 0, { v: 2 }] });
  table.show([NAME, "v"]);
  table.sortBy("v", true);
  assert.deepEqual(listed(table), ["b", "a"]);
  store.apply(
    change(
      VIEW,
      row("~", "a", 1, 1, { properties: { v: 5, name: "Anna", draught_m: 3 }, time_us: (NOW + 1) * 1000 }),
      row("-", "b", 0, 0),
    ),
    NOW,
  );
  store.apply(change(VIEW, row("+", "c", 0, 0, { properties: {} })), NOW);
  assert.deepEqual(listed(table), ["a", "c"]);
  assert.ok(table.choices().includes("draught_m"));
  table.show([NAME, "draught_m"]);
  table.sortBy("draught_m", false);
  listed(table);
  const [first, second] = table.slots;
  assert.equal(table.columns.shown("draught_m", first, NOW), "3 m");
  assert.equal(table.columns.shown("draught_m", second, NOW), "\u2013");
  assert.equal(table.columns.shown(NAME, first, NOW), "Anna");
  assert.equal(table.rowOf(second), 1);
});

test("a table lists what is in view, a stream, an answer, or the watched objects that the page knows", () => {
  const bounds = { west: 175, south: -5, east: 185, north: 5 };
  const { store, table } = tableOver({ a: [179, 0], b: [-179, 0], c: [170, 0], d: [179, 8] }, { a: [180, 1] }, bounds);
  table.sortBy(KEY, false);
  table.sortBy(STREAM, false);
  assert.deepEqual(listed(table), ["a", "a", "b"]);
  table.members.shown = (stream) => stream === "buses";
  assert.deepEqual(listed(table), ["a"]);
  assert.deepEqual(listed(table, readSource("stream:ships")), ["a", "b", "c", "d"]);
  assert.deepEqual(listed(table, readSource("watched")), ["a"]);
  store.apply(status(7), NOW);
  store.apply(snapshot(7, row("+", "c", 170, 0)), NOW);
  assert.deepEqual(listed(table, readSource("query:7")), ["c"]);
  assert.deepEqual(["", "query:x", "stream:", "all", null].map(readSource), [null, null, null, null, null]);
  assert.deepEqual(
    [{}, { aggregate: { function: "count" } }, { kind: "encounter" }, { emit: "all" }].map((more) =>
      hasObjects({ plan: { stream: "ships", ...more } }),
    ),
    [true, false, false, false],
  );
});

test("rows are filtered by a text in any shown column, and by conditions for columns", () => {
  const { table } = tableOver(
    {
      a: [0, 0, { speed_mps: 5, kind: "cargo", name: "Anna (1)" }, 30],
      b: [0, 1, { speed_mps: 5.5, kind: "Tanker" }, 90],
      c: [0, 2, {}, 0],
    },
    { d: [0, 3, { speed_mps: -1 }] },
  );
  table.sortBy(KEY, false);
  table.show([NAME, KEY, STREAM, HEARD, "speed_mps", "kind"]);
  const with_ = (conditions, search = "") => {
    table.conditions = new Map(conditions);
    table.search = search;
    table.show(table.shown);
    return listed(table).join("");
  };
  assert.equal(with_([]), "abcd");
  assert.equal(with_([["speed_mps", ">5"]]), "b");
  assert.equal(with_([["speed_mps", ">= 5 m/s"]]), "ab");
  assert.equal(with_([["speed_mps", "<5"]]), "d");
  assert.equal(with_([["speed_mps", "=5"]]), "a");
  assert.equal(with_([["speed_mps", "<>5"]]), "bcd");
  assert.equal(with_([["speed_mps", "5"]]), "ab");
  assert.equal(with_([["kind", "=tanker"]]), "b");
  assert.equal(with_([["kind", "r"]]), "ab");
  assert.equal(with_([[HEARD, "> 1 min"]]), "b");
  assert.equal(with_([[LATITUDE, ">=2"]]), "cd");
  assert.equal(
    with_([
      ["kind", "r"],
      ["speed_mps", "<5.2"],
    ]),
    "a",
  );
  assert.equal(with_([], "anna (1"), "a");
  assert.equal(with_([], "city"), "d");
  assert.equal(with_([], "ships tank"), "b");
  assert.equal(with_([], "speed_mps"), "", "names of properties are not searched");
  assert.equal(table.of, 4);
  assert.equal(table.setCondition("speed_mps", "> fast"), "Write a number after >, in m/s");
  assert.equal(readCondition("speed_mps", ">5 fathoms").error, "Write a number after >, in m/s");
  assert.equal(table.setCondition("speed_mps", ""), "");
});

test("a number in a filter is in the unit that the page shows, or in the one that is written", () => {
  const passes = (name, written, number) =>
    readCondition(name, written).passes({ number: () => number, text: () => null }, 0);
  const holds = (...cases) =>
    cases.forEach(([name, written, number, wanted]) => assert.equal(passes(name, written, number), wanted, written));
  try {
    chooseUnits("nautical");
    assert.deepEqual(
      [aboutColumn("speed_mps").unit, aboutColumn(ALTITUDE).unit, aboutColumn("to_bow_m").unit],
      ["kn", "ft", "m"],
    );
    holds(
      ["speed_mps", "> 5", 3, true],
      ["speed_mps", "> 5", 2, false],
      ["speed_mps", "> 5 m/s", 3, false],
      ["speed_mps", "= 10", 5.1444, true],
      ["speed_mps", "<> 10", 5.1444, false],
      ["speed_kmh", "> 5", 9, false],
      ["vertical_rate_mps", "> 1000", 5.2, true],
      ["altitude_m", ">= 1000", 304, false],
      [ALTITUDE, ">= 1000 m", 1000, true],
      ["length_m", "< 1 km", 999, true],
      ["course_deg", "> 90", 91, true],
    );
    chooseUnits("imperial");
    holds(["temperature_c", "> 50", 9, false], ["temperature_c", "> 50", 11, true]);
    chooseUnits("metric");
    holds(["speed_mps", "> 5", 5.1, true], ["speed_mps", "= 5", 5.01, false]);
  } finally {
    chooseUnits("metric");
  }
});

test("an address holds the unit of a number in a filter where the page shows another one than that of the property", () => {
  try {
    chooseUnits("nautical");
    assert.deepEqual(
      [
        toAddress("speed_mps", ">5"),
        toAddress("speed_mps", "> 5 m/s"),
        toAddress("course_deg", ">5"),
        toAddress("name", "5"),
      ],
      [">5 kn", "> 5 m/s", ">5", "5"],
    );
    assert.equal(fromAddress("speed_mps", ">5"), ">5 m/s");
    chooseUnits("metric");
    assert.deepEqual(
      [toAddress("speed_mps", ">5"), fromAddress("speed_mps", ">5"), toAddress("speed_kn", ">5")],
      [">5", ">5", ">5 m/s"],
    );
  } finally {
    chooseUnits("metric");
  }
});

test("the rows in the document are those in view, however long the list is", () => {
  const view = { height: 280, rowHeight: 28 };
  assert.deepEqual(rowsInView({ ...view, scrollTop: 0, count: 100_000 }), { first: 0, last: 18 });
  assert.deepEqual(rowsInView({ ...view, scrollTop: 2_800_000 - 280, count: 100_000 }), {
    first: 99_982,
    last: 100_000,
  });
  assert.deepEqual(rowsInView({ ...view, scrollTop: 50_000, count: 3 }), { first: 3, last: 3 });
  assert.equal(scrolledTo(5, { ...view, scrollTop: 0 }), 0);
  assert.equal(scrolledTo(5, { ...view, scrollTop: 1000 }), 140);
  assert.equal(scrolledTo(20, { ...view, scrollTop: 0 }), 308);
  const after = (key, at) => rowAfter(key, at, { count: 100, page: 10 });
  assert.deepEqual(
    [
      after("ArrowDown", 99),
      after("ArrowUp", 0),
      after("PageDown", 3),
      after("Home", 7),
      after("End", 7),
      after("x", 7),
    ],
    [99, 0, 13, 0, 99, undefined],
  );
});

test("an export has all rows, values as they are, and nothing that a spreadsheet runs", () => {
  const { table } = tableOver({
    a: [24.5, 60, { speed_mps: -2.5, name: '=HYPERLINK("x")' }],
    b: [25, 61, { name: "B, C", flag: true }],
  });
  const shown = [NAME, HEARD, PLACE, "speed_mps", "flag"];
  table.show(shown);
  table.sortBy("speed_mps", false);
  listed(table);
  const time = new Date(NOW).toISOString();
  assert.equal(
    csv(table, shown),
    [
      "name,last_heard,longitude,latitude,speed_mps,flag",
      `"'=HYPERLINK(""x"")",${time},24.5,60,-2.5,`,
      `"B, C",${time},25,61,,yes`,
      "",
    ].join("\r\n"),
  );
  const { features } = JSON.parse(geoJson(table, shown));
  assert.deepEqual(
    features.map(({ id, geometry }) => [id, geometry.coordinates]),
    [
      ["a", [24.5, 60]],
      ["b", [25, 61]],
    ],
  );
  assert.deepEqual(features[0].properties, { name: '=HYPERLINK("x")', last_heard: time, speed_mps: -2.5, flag: null });
});

test("the address holds the table after the view, and each part is read without the other", () => {
  const state = {
    source: "stream:a&b",
    sort: { name: "speed_mps", descending: true },
    search: "anna + co",
    conditions: [
      ["addr:street", "=a~b"],
      ["v", ">5"],
    ],
  };
  const hash = formatHash({ zoom: 9, lat: 60, lon: 25, streams: ["a&b"] }) + tableHash(state);
  assert.deepEqual(tableOf(hash), state);
  assert.deepEqual(parseHash(hash), { zoom: 9, lat: 60, lon: 25, streams: ["a&b"] });
  assert.equal(tableOf("#9/60/25/ships"), null);
  assert.equal(tableOf("#9/60/25&table=nonsense"), null);
  assert.equal(tableHash(null), "");
  assert.deepEqual(parseHash("#9/60/25&table=view"), { zoom: 9, lat: 60, lon: 25, streams: null });
});
