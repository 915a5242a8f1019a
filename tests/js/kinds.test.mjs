import assert from "node:assert/strict";
import test from "node:test";

import { kindOf } from "../../static/js/kinds/registry.js";

const AROUND = { key: "a", radius: 5 };
const PLANS = [
  [{ kind: "range", compare: {} }, "inside"],
  [{ compare: {}, report: "outside" }, "outside"],
  [{ kind: "range", around: AROUND, aggregate: { function: "count" } }, "around"],
  [{ kind: "knn", k: 3, around: { key: "a" } }, "nearest"],
  [{ kind: "join", join: { layer: "ports" } }, "join"],
  [null, "inside"],
];

test("each plan has one kind, which says what its answer is made of", () => {
  assert.deepEqual(
    PLANS.map(([plan]) => kindOf(plan).report),
    PLANS.map(([, report]) => report),
  );
  assert.deepEqual(
    PLANS.map(([plan]) => Boolean(kindOf(plan).ranked)),
    [false, false, false, true, false, false],
  );
  assert.deepEqual(
    PLANS.map(([plan]) => Boolean(kindOf(plan).paired)),
    [false, false, false, false, true, false],
  );
});
