import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";

import { planText } from "../../static/js/kinds/plan-text.js";
import { formOfReport, formParts, kindOf, KINDS, planOf } from "../../static/js/kinds/registry.js";

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

const JS = new URL("../../static/js/", import.meta.url);
// What plans have as their kind, but for "range", which says nothing of a focus or an aggregate.
const NAMES =
  /\bkind\b["')]*\s*(?:[!=]==|:)\s*"(?:join|window_join|interval_join|encounter|rule|sketch|knn|approach|closest_approach|track)"/;

test("no module outside of kinds/ asks or says by name which kind a plan has", () => {
  for (const said of ['plan?.kind === "knn"', '{ stream, kind: "join" }', '"kind": "track"', '(plan.kind) !== "rule"'])
    assert.match(said, NAMES);
  const naming = readdirSync(JS, { recursive: true })
    .filter((name) => name.endsWith(".js") && !name.startsWith("kinds/"))
    .filter((name) => NAMES.test(readFileSync(new URL(name, JS), "utf8")));
  assert.deepEqual(naming, []);
});

test("each folder of kinds/ with a kind is in the registry", () => {
  const registry = readFileSync(new URL("kinds/registry.js", JS), "utf8");
  const folders = readdirSync(new URL("kinds/", JS), { recursive: true }).filter((name) => name.endsWith("/kind.js"));
  assert.deepEqual(
    [...registry.matchAll(/from "\.\/(.*\/kind\.js)"/g)].map(([, name]) => name).toSorted(),
    folders.toSorted(),
  );
  assert.equal(new Set(KINDS).size, KINDS.length);
});

test("what a kind makes of the form's fields is a plan that it claims", () => {
  const join = { source: "stream", name: "b", predicate: "dwithin", distance: 5, where: "" };
  const close = { stream: "b", where: "", mirrored: false, withinM: 5, withinS: 60 };
  const others = { around: AROUND, k: 3, within: 60, close, box: { lo: [0, 0], hi: [1, 1] }, where: "", stream: "a" };
  for (const kind of KINDS.filter(({ makes }) => makes)) {
    const times = { ...kind.times?.standard, when: kind.when ?? "now", latenessS: 1, idleS: 1 };
    const noise =
      kind.makes({ noise: {}, join: { ...join, times } }) && kind.report === "inside" ? { gap_s: 60 } : null;
    const fields = { ...others, report: kind.report, join: { ...join, times }, noise };
    assert.equal(kindOf(planOf({}, fields)), kind, kind.report);
  }
});

test("each part of the form keeps to the protocol, and each report of the form has some", () => {
  for (const Part of formParts())
    for (const method of ["start", "show", "read", "errors"])
      assert.equal(typeof Part.prototype[method], "function", `${Part.name}.${method}`);
  for (const report of ["inside", "outside", "approach", "close", "around", "nearest", "join"])
    assert.ok(formOfReport(report).parts.length > 0, report);
});

test("a new kind is claimed, made, said and left by its entry in the list alone", (context) => {
  class Part {}
  const crowd = {
    report: "crowd",
    told: true,
    claims: ({ kind }) => kind === "crowd",
    makes: ({ most }) => most > 0,
    plan: ({ emit, ...kept }, { stream, most }) => ({ ...kept, stream, kind: "crowd", most }),
    leave: ({ most, kind, ...kept }) => kept,
    words: ({ most }) => `crowds of ${most}`,
    form: { parts: [Part] },
  };
  KINDS.unshift(crowd);
  context.after(() => KINDS.shift());
  const plan = planOf({ where: "a = 1" }, { stream: "a", report: "crowd", most: 5 });
  assert.deepEqual(plan, { where: "a = 1", stream: "a", kind: "crowd", most: 5 });
  assert.equal(kindOf(plan), crowd);
  assert.equal(
    planText(plan, () => ""),
    "crowds of 5",
  );
  assert.deepEqual(formOfReport("crowd").parts, [Part]);
  assert.equal(formParts().includes(Part), true);
  const range = planOf(plan, { stream: "a", report: "inside", where: "", box: { lo: [0, 0], hi: [1, 1] } });
  assert.deepEqual([range.kind, "most" in range], ["range", false]);
});
