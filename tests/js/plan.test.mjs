import assert from "node:assert/strict";
import { test } from "node:test";

import { errorField } from "../../static/js/queries/error-field.js";
import { ABOUT, nameAbout, renamed } from "../../static/js/kinds/about.js";
import { planText } from "../../static/js/kinds/plan-text.js";
import { boxOf } from "../../static/js/kinds/plan.js";
import { kindOf, planOf } from "../../static/js/kinds/registry.js";

const BOX = { lo: [5, 5], hi: [6, 6] };
const JOIN = { source: "layer", name: "roads", predicate: "intersects", distance: 50, where: "" };
const FIELDS = { stream: "buses", report: "join", where: "speed_mps > 5", box: null, join: JOIN };

test("a join over the whole map has no area, and a distance only for dwithin", () => {
  const plan = planOf({}, FIELDS);
  assert.deepEqual(plan, {
    stream: "buses",
    kind: "join",
    where: "speed_mps > 5",
    join: { layer: "roads", predicate: "intersects" },
  });
  const near = planOf(
    {},
    { ...FIELDS, join: { ...JOIN, predicate: "dwithin", distance: 5, where: "kind = 'street'" } },
  );
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
  const before = {
    kind: "join",
    stream: "buses",
    transform: [{ enlarge_m: 5 }],
    filters,
    join: { stream: "ships", predicate: "dwithin", distance: 3, pair_filters: filters },
  };
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
  assert.equal(
    told({ stored: "ships", predicate: "dwithin", distance: 5 }),
    "within 5 m of where stored ships have been",
  );
  assert.equal(planText({ report: "outside" }, title), "outside a rectangle");
});

test("an error of a join is shown at its field", () => {
  const field = (message) => errorField("plan", message);
  assert.equal(field("join: where: the ( at character 5 is not closed"), "partnerWhere");
  assert.equal(field("join: distance must be at least 0; got -1"), "distance");
  assert.equal(field("predicate must be one of intersects; got 'x'"), "partner");
  assert.equal(field("a range query has the keys stream, where, compare; got the unknown colour"), "plan");
  assert.equal(field("where: the ( at character 5 is not closed"), "where");
});

const AROUND = { stream: "ships", key: "anna", radius: 9260 };
const ABOUT_FIELDS = { stream: "ships", where: "", box: null };

test("what a plan reports decides which fields it has", () => {
  const reports = [
    {},
    { report: "outside" },
    { kind: "join", join: {} },
    { around: AROUND },
    { kind: "knn", around: {} },
  ].map((plan) => kindOf(plan).report);
  assert.deepEqual(reports, ["inside", "outside", "join", "around", "nearest"]);
});

test("a range about a focus keeps filters and its own area, and nothing of a box or of each element as it comes", () => {
  const before = {
    stream: "ships",
    compare: BOX,
    area: BOX,
    report: "outside",
    transform: [{ enlarge_m: 5 }],
    filters: [{ key: "x" }],
    emit: "all",
  };
  const plan = planOf(before, { ...ABOUT_FIELDS, report: "around", around: AROUND, aggregate: null });
  assert.deepEqual(plan, { stream: "ships", kind: "range", filters: [{ key: "x" }], around: AROUND, where: "" });
  const edited = planOf(
    { ...plan, area: BOX, emit: "membership" },
    { ...ABOUT_FIELDS, report: "around", around: AROUND, aggregate: null },
  );
  assert.deepEqual([edited.area, edited.emit], [BOX, "membership"]);
  assert.equal(boxOf(edited), null);
});

test("neighbours keep their alpha, and a range that they become does not", () => {
  const before = { kind: "knn", k: 5, alpha: 0.5, max_distance: 9, around: { at: [1, 2] } };
  const fields = { ...ABOUT_FIELDS, report: "nearest", around: { at: [3, 4] }, k: 7, max_distance: null };
  assert.deepEqual(planOf(before, fields), {
    stream: "ships",
    kind: "knn",
    alpha: 0.5,
    k: 7,
    around: { at: [3, 4] },
    where: "",
  });
  assert.equal(planOf(before, { ...fields, max_distance: 500 }).max_distance, 500);
  const range = planOf(before, { ...ABOUT_FIELDS, report: "inside", box: BOX, aggregate: null });
  assert.deepEqual(range, { kind: "range", stream: "ships", report: "inside", where: "", compare: BOX });
  const join = planOf({ ...before, area: BOX }, FIELDS);
  assert.deepEqual(Object.keys(join).sort(), ["join", "kind", "stream", "where"]);
});

test("an aggregate is of a box or about a focus, and goes when the objects themselves are told", () => {
  const aggregate = { function: "count" };
  const inside = planOf({ emit: "all" }, { ...ABOUT_FIELDS, report: "inside", box: BOX, aggregate });
  assert.deepEqual([inside.aggregate, inside.emit, inside.compare], [aggregate, undefined, BOX]);
  const about = planOf(inside, { ...ABOUT_FIELDS, report: "around", around: AROUND, aggregate });
  assert.deepEqual([about.aggregate, about.compare], [aggregate, undefined]);
  assert.equal(
    "aggregate" in planOf(about, { ...ABOUT_FIELDS, report: "around", around: AROUND, aggregate: null }),
    false,
  );
});

test("plans about a focus and aggregates are told in words", () => {
  const told = (plan, focus) => planText(plan, (_, name) => name, focus);
  assert.equal(told({ kind: "range", around: AROUND }, "MS Anna"), "within 9.26 km of MS Anna");
  assert.equal(
    told({ kind: "range", around: { at: [24.5, 59.7], half_widths: [500] } }),
    "in 1 km × any around 59.7000° N, 24.5000° E",
  );
  assert.equal(told({ kind: "range", around: { key: "anna", polygon: [] } }), "in a polygon around anna");
  assert.equal(
    told({ kind: "knn", k: 10, around: { key: "anna" }, max_distance: 850 }),
    "10 nearest to anna, at most 850 m away",
  );
  const target = { lo: [24, 59], hi: [25, 60] };
  assert.equal(told({ kind: "approach", target, within_s: 630 }), "inside a rectangle within 10.5 min");
  const circle = { circle: { center: [24, 59], radius_m: 500 } };
  assert.equal(told({ kind: "approach", target: circle, within_s: 600 }), "in a circle of 500 m within 10 min");
  const close = {
    stream: "ships",
    kind: "closest_approach",
    join: { stream: "ferries" },
    within_m: 500,
    within_s: 600,
  };
  assert.equal(told(close), "will come within 500 m of ferries in 10 min");
  const aggregate = { function: "avg", property: "speed_mps", group_by: "ship_type" };
  assert.equal(told({ kind: "range", report: "inside", aggregate }), "average speed inside a rectangle, by ship type");
  assert.equal(
    told({ kind: "range", around: AROUND, aggregate: { function: "count" } }),
    "count within 9.26 km of anna",
  );
  assert.equal(
    told({ kind: "range", aggregate: { function: "max", dimension: "latitude" } }),
    "largest latitude inside a rectangle",
  );
});

test("one click makes plans about an object or a place", () => {
  const [watch, nearest, count] = ABOUT.map((about) => about.plan("ships", { at: [1, 2] }));
  assert.deepEqual(watch.around, { at: [1, 2], radius: 10_000 });
  assert.deepEqual([nearest.kind, nearest.k, nearest.around], ["knn", 10, { at: [1, 2] }]);
  assert.deepEqual([count.around, count.aggregate], [watch.around, { function: "count" }]);
  assert.deepEqual(
    ABOUT.map((about) => nameAbout(about, "MS Anna")),
    ["10 km around MS Anna", "10 nearest to MS Anna", "Count 10 km around MS Anna"],
  );
  assert.ok(nameAbout(ABOUT[0], "x".repeat(500)).length <= 120);
});

test("an error about a focus or an aggregate is shown at its field", () => {
  const field = (message) => errorField("plan", message);
  assert.equal(field("around: radius must be above 0; got -1"), "shape");
  assert.equal(field("around: half_widths: longitude must be above 0; got 0"), "shape");
  assert.equal(field("around must have one of key, at; got none"), "focus");
  assert.equal(field("k must be a whole number from 1 to 1000; got 0"), "k");
  assert.equal(field("max_distance must be above 0; got 0"), "maxDistance");
  assert.equal(field("aggregate: avg must have one of property, dimension; got none"), "aggregate");
  assert.equal(field("thresholds must differ from each other; got above 1, above 1"), "thresholds");
  assert.equal(field("a threshold: above must be a finite number; got 'x'"), "thresholds");
});

test("a closest approach is of one stream or two, and keeps what the form does not show", () => {
  const close = { stream: "ferries", where: "", mirrored: false, withinM: 500, withinS: 600 };
  const fields = { stream: "ships", report: "close", where: "", box: null, shape: null, close };
  const plan = planOf({ kind: "range", compare: { lo: [0, 0], hi: [1, 1] }, emit: "all" }, fields);
  assert.deepEqual(plan, {
    stream: "ships",
    kind: "closest_approach",
    join: { stream: "ferries" },
    within_m: 500,
    within_s: 600,
    where: "",
  });
  assert.equal(kindOf(plan).report, "close");
  const before = { ...plan, gap_s: 60, mirrored: true, join: { stream: "ferries", where: "a = 1" } };
  const edited = planOf(before, { ...fields, close: { ...close, stream: "ships", where: "a = 1", mirrored: true } });
  assert.deepEqual(edited, { ...before, join: { stream: "ships", where: "a = 1" } });
  const { within_m: none, gap_s: neither } = planOf(before, {
    ...fields,
    report: "inside",
    box: { lo: [0, 0], hi: [1, 1] },
  });
  assert.deepEqual([none, neither], [undefined, undefined]);
});

test("a closest approach has an area, a filter of the partner and both ways as the form says, and keeps the rest", () => {
  const close = { stream: "ships", where: "kind = 'tanker'", mirrored: true, withinM: 500, withinS: 600 };
  const box = { lo: [0, 0], hi: [1, 1] };
  const fields = { stream: "ships", report: "close", where: "", box, shape: null, close };
  const plan = planOf({}, fields);
  assert.deepEqual([plan.area, plan.join, plan.mirrored], [box, { stream: "ships", where: "kind = 'tanker'" }, true]);
  assert.deepEqual(boxOf(plan), box);
  const kept = { filters: [{ key: "a" }], pair_filters: [{ udf: "key_equals", argument: "a" }] };
  const high = { lo: [0, 0, 10], hi: [1, 1, 20] };
  const edited = planOf(
    { ...plan, join: { ...plan.join, ...kept }, area: high },
    { ...fields, close: { ...close, where: "", mirrored: false } },
  );
  assert.deepEqual([edited.area, edited.join, edited.mirrored], [high, { stream: "ships", ...kept }, undefined]);
  const circle = { circle: { center: [0.5, 0.5], radius_m: 500 } };
  assert.deepEqual(planOf(plan, { ...fields, box: null, shape: circle }).area, circle);
  assert.equal(planOf(plan, { ...fields, box: null }).area, undefined); // everywhere
});

test("a predicted entry keeps the area that objects will enter, and the form shows it", () => {
  const box = { lo: [24.2, 59.6], hi: [24.8, 59.8] };
  const fields = { stream: "ships", report: "approach", where: "", box, shape: null, within: 600 };
  const plan = planOf({}, fields);
  assert.deepEqual(plan, { stream: "ships", kind: "approach", target: box, within_s: 600, where: "" });
  assert.equal(kindOf(plan).report, "approach");
  assert.deepEqual(boxOf(plan), box);
  const inside = planOf(plan, { ...fields, report: "inside", aggregate: null });
  assert.deepEqual([inside.kind, inside.target, inside.within_s, inside.compare], ["range", undefined, undefined, box]);
  const circle = { circle: { center: [24.5, 59.7], radius_m: 500 } };
  assert.deepEqual(planOf(plan, { ...fields, box: null, shape: circle }).target, circle);
});

test("a range with noise is about tracks, keeps its area, and is a range again without it", () => {
  const box = { lo: [24.2, 59.6], hi: [24.8, 59.8] };
  const fields = { stream: "ships", report: "inside", where: "a = 1", box, shape: null, aggregate: null };
  const noise = { accuracy: { property: "acc", else_m: 10 }, fastest_m_s: 50, gap_s: 0 };
  const plan = planOf(
    { kind: "range", compare: box, report: "inside", transform: [], emit: "changes" },
    { ...fields, noise },
  );
  assert.deepEqual(plan, { stream: "ships", kind: "track", where: "a = 1", area: box, ...noise, emit: "changes" });
  assert.equal(kindOf(plan).report, "inside");
  assert.deepEqual(boxOf(plan), box);
  const high = { ...plan, area: { lo: [...box.lo, 0], hi: [...box.hi, 900] } };
  assert.deepEqual(planOf(high, { ...fields, noise }).area, high.area);
  const range = planOf(plan, { ...fields, noise: null });
  assert.deepEqual(
    [range.kind, range.compare, range.area, range.accuracy, range.gap_s],
    ["range", box, undefined, undefined, undefined],
  );
  const circle = { circle: { center: [24.5, 59.7], radius_m: 500 } };
  assert.deepEqual(planOf(plan, { ...fields, box: null, shape: circle, noise }).area, circle);
  assert.equal(planOf(plan, { ...fields, report: "approach", within: 600 }).kind, "approach");
});

test("a card says what a query about tracks takes into account", () => {
  const told = (plan) => planText({ kind: "track", ...plan }, (_, name) => name, "");
  assert.equal(told({ area: { lo: [0, 0], hi: [1, 1] } }), "inside a rectangle, with crossings between reports");
  const circle = { circle: { center: [24.5, 59.7], radius_m: 500 } };
  assert.equal(
    told({ area: circle, accuracy: 10, fastest_m_s: 50, gap_s: 0 }),
    "in a circle of 500 m, accurate to 10 m, at most 50 m/s",
  );
  assert.equal(
    told({ area: circle, accuracy: { property: "acc", else_m: 10 }, gap_s: 0 }),
    "in a circle of 500 m, accuracy by acc",
  );
});

test("a name that was made of figures of the plan follows them, and any other name stays", () => {
  const [range, nearest, counted] = ABOUT.map((about) => about.plan("ships", { key: "1" }));
  const wider = (plan) => ({ ...plan, around: { ...plan.around, radius: 2500 } });
  for (const [about, before, after, name] of [
    [ABOUT[0], range, wider(range), "2.5 km around MS Anna"],
    [ABOUT[1], nearest, { ...nearest, k: 3 }, "3 nearest to MS Anna"],
    [ABOUT[2], counted, wider(counted), "Count 2.5 km around MS Anna"],
  ]) {
    const made = nameAbout(about, "MS Anna");
    assert.equal(renamed(made, before, after), name);
    assert.equal(renamed(renamed(made, before, after), after, before), made);
    for (const own of ["Pilots", made.replace("10", "11"), `Our ${made}`, ""])
      assert.equal(renamed(own, before, after), own);
  }
  const box = { stream: "ships", kind: "range", area: { lo: [0, 0], hi: [1, 1] } };
  assert.equal(renamed("10 km around here", range, box), "10 km around here");
  assert.equal(renamed("10 km around here", undefined, range), "10 km around here");
});
