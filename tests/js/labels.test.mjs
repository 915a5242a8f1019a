import assert from "node:assert/strict";
import test from "node:test";

import { uncrowded } from "../../static/js/labels.js";
import { countInView } from "../../static/js/layers.js";
import { createStore } from "../../static/js/store.js";
import { NOW, SHIPS, hello, row, snapshot, status } from "./helpers.mjs";

test("of labels that overlap the first one stays", () => {
  const things = [[0, 0], [5, 5], [30, 0], [3, 25], [31, 1]].map(([x, y], rank) => ({ x, y, rank }));
  assert.deepEqual(uncrowded(things, (thing) => thing, [24, 20]).map(({ rank }) => rank), [0, 2, 3]);
});

test("an object of an answer that lies beyond the view is not counted as in view", () => {
  const store = createStore();
  for (const message of [hello(SHIPS), status(1), snapshot(1, row("+", "near", 1, 1), row("+", "far", 40, 1))]) store.apply(message, NOW);
  assert.equal(store.objects.byStream.get("ships").size, 2);
  assert.equal(countInView(store.objects, { west: 0, south: 0, east: 2, north: 2 }).get("ships"), 1);
});
