import assert from "node:assert/strict";
import { test } from "node:test";

import { errorField, planText } from "../../static/js/format.js";
import { boxOf, planOf } from "../../static/js/plan.js";

const BOX = { lo: [5, 5], hi: [6, 6] };
const JOIN = { source: "layer", name: "roads", predicate: "intersects", distance: 50, where: "" };
const FIELDS = { stream: "buses", report: "join", where: "speed_mps > 5", box: null, join: JOIN };

test("a join over the whole map has no area, and a distance only for dwithin", () => {
  const plan = planOf({}, FIELDS);
  assert.deepEqual(plan, { stream: "buses", kind: "join", where: "speed_mps > 5", join: { layer: "roads", predicate: "intersects" } });
  const near = planOf({}, { ...FIELDS, join: { ...JOIN, predicate: "dwithin", distance: 5, where: "kind = 'street'" } });
  assert.deepEqual(near.join, { layer: "roads", predicate: "dwithin", distance: 5, where: "kind = 'street'" });
});

test("a join in a rectangle has it as its area", () => {
  const plan = planOf({}, { ...FIELDS, box: BOX });
  assert.deepEqual([plan.area, boxOf(plan)], [BOX, BOX]);
  assert.equal(boxOf(planOf(plan, FIELDS)), null);
});

test("a range query that becomes a join keeps nothing of its comparison, and the other way round", () => {
  const range = planOf({}, { stream: "buses", report: "outside", where: "", box: BOX });
  const join = planOf({ ...range, area: BOX, emit: "all" }, FIELDS);
  assert.deepEqual(Object.keys(join).sort(), ["emit", "join", "kind", "stream", "where"]);
  const back = planOf({ ...join, area: BOX }, { stream: "buses", report: "inside", where: "", box: BOX });
  assert.deepEqual([back.kind, back.join, back.area, back.compare], ["range", undefined, undefined, BOX]);
});

test("what the form does not show of a join is kept", () => {
  const filters = [{ udf: "key_equals", argument: "7" }];
  const before = { kind: "join", stream: "buses", transform: [{ enlarge_m: 5 }], filters, join: { stream: "ships", predicate: "dwithin", distance: 3, pair_filters: filters } };
  const plan = planOf(before, FIELDS);
  assert.deepEqual([plan.transform, plan.filters], [before.transform, filters]);
  assert.deepEqual(plan.join, { layer: "roads", predicate: "intersects", pair_filters: filters });
  const stored = planOf({ ...before, join: { stored: "ships", predicate: "intersects" } }, FIELDS);
  assert.deepEqual(stored.join, { layer: "roads", predicate: "intersects" });
});

test("a plan is told in words", () => {
  const title = (source, name) => `${source} ${name}`;
  const told = (join) => planText({ kind: "join", join }, title);
  assert.equal(told({ layer: "roads", predicate: "dwithin", distance: 5 }), "within 5 m of layer roads");
  assert.equal(told({ stream: "ships", predicate: "touches" }), "touching stream ships");
  assert.equal(told({ stored: "ships", predicate: "dwithin", distance: 5 }), "within 5 m of where stored ships have been");
  assert.equal(planText({ report: "outside" }, title), "outside");
});

test("an error of a join is shown at its field", () => {
  const field = (message) => errorField("plan", message);
  assert.equal(field("join: where must be CQL2 text; got 'a > ('"), "partnerWhere");
  assert.equal(field("join: distance must be at least 0; got -1"), "distance");
  assert.equal(field("predicate must be one of intersects; got 'x'"), "partner");
  assert.equal(field("a range query has the keys stream, where, compare; got the unknown colour"), "plan");
  assert.equal(field("where must be CQL2 text; got 'a > ('"), "where");
});
