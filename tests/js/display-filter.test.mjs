// The page evaluates filters as the server does: both must pass the same cases (tests/test_filters.py).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { FilterError } from "../../static/js/display-filter/cql2.js";
import { checked, DisplayFilter } from "../../static/js/display-filter/display-filter.js";
import { compileFilter } from "../../static/js/display-filter/filter.js";
import { reader } from "../../static/js/objects/property-text.js";
import { createStore } from "../../static/js/store/store.js";
import { NOW, SHIPS, change, hello, row, snapshot } from "./helpers.mjs";

const { objects, cases } = JSON.parse(readFileSync(new URL("../filter_cases.json", import.meta.url), "utf8"));

test("a filter finds what the server finds, and is refused for the same reason", () => {
  for (const { where, passes, error } of cases) {
    if (error) assert.throws(() => compileFilter(where), { message: error }, where);
    else assert.deepEqual(objects.map(compileFilter(where)), passes.map(Boolean), where);
  }
});

test("no text overflows", () => {
  const brackets = `${"(".repeat(400)}a${")".repeat(400)}`;
  assert.equal(compileFilter(brackets)('{"a":true}'), true);
  for (const text of ["(".repeat(1990), `${"NOT ".repeat(490)}a`, `a = ${"-".repeat(1900)}b`, "x".repeat(2001)])
    assert.throws(() => compileFilter(text), FilterError);
});

test("a property is read from the text without parsing all of it, also among nested ones", () => {
  const text = '{"a":"say \\"b\\":1","b":2,"c":{"b":3,"d":"}"},"e":[{"b":4}],"f":null,"g":-1.5e3}';
  assert.deepEqual(
    ["a", "b", "c", "d", "e", "f", "g"].map((name) => reader(name)(text)),
    ['say "b":1', 2, { b: 3, d: "}" }, undefined, [{ b: 4 }], undefined, -1500],
  );
  assert.equal(reader("b")('{"c":{"b":3}}'), undefined);
});

test("objects are hidden by a filter until their properties change, and counted", () => {
  const store = createStore();
  const ship = (key, speed) => row("+", key, 1, 1, { properties: { speed_mps: speed } });
  for (const message of [
    hello(SHIPS),
    { type: "view.status", views: { ships: 90 } },
    snapshot(90, ship("a", 1), ship("b", 9), ship("c", 10)),
  ])
    store.apply(message, NOW);
  const filter = new DisplayFilter(store);
  assert.equal(filter.active, false);
  filter.set(" speed_mps > 5 ");
  assert.deepEqual(
    filter.count(() => true),
    { shown: 2, of: 3 },
  );
  store.apply(change(90, ship("a", 6)), NOW);
  assert.deepEqual(
    filter.count(() => true),
    { shown: 3, of: 3 },
  );
  assert.deepEqual(
    filter.count(() => false),
    { shown: 0, of: 0 },
  );
  assert.throws(() => filter.set("speed_mps >"), FilterError);
  assert.equal(filter.text, "speed_mps > 5"); // the one before stays
  filter.set("");
  assert.equal(filter.active, false);
});

test("what a filter would match is told before it is set", () => {
  assert.deepEqual(checked("speed > 4", objects), { error: null, matches: 3, of: 5, unknown: [], whole: true });
  assert.deepEqual(checked("sped > 4", objects).unknown, [{ name: "sped", nearest: null }]);
  assert.match(checked("speed >", objects).error, /a value is missing/);
});
