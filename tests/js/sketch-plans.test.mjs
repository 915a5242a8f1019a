import assert from "node:assert/strict";
import { test } from "node:test";

import { chosenRows, figuresOf, obstacle, questionFor } from "../../static/js/kinds/sketch/exact.js";
import { everyFor, faultsOf, planFrom, timeFrom } from "../../static/js/kinds/sketch/plans.js";

const FIELDS = {
  stream: "air",
  feature: "temp",
  features: ["temp", "wind"],
  comoments: ["temp", "wind"],
  shows: ["series", "histogram", "correlation"],
  every: "month",
  binS: 3600,
  place: { area: { lo: [1, 2], hi: [3, 4] } },
  span: "all",
  zone: "utc",
  zoneName: "Asia/Shanghai",
  against: "nothing",
  other: null,
};

test("all that is shown of an area is one plan", () => {
  const plan = planFrom(FIELDS);
  assert.deepEqual(
    plan.ask.map(({ question }) => question),
    ["select", "series", "histogram", "deciles", "correlation"],
  );
  assert.deepEqual({ ...plan, ask: 0 }, { stream: "air", kind: "sketch", ask: 0, area: { lo: [1, 2], hi: [3, 4] } });
});

test("a forecast looks as far ahead as suits the steps, and not too many steps of the sketch", () => {
  const horizon = (fields) => planFrom({ ...FIELDS, shows: ["forecast"], ...fields }).ask.at(-1).horizon_s;
  assert.equal(horizon({ binS: 86_400 }), 365 * 86_400);
  assert.equal(horizon({ binS: 60 }), 5000 * 60);
});

test("a contrast compares all features, the chosen one first", () => {
  const other = { area: { lo: [5, 2], hi: [6, 4] } };
  const plan = planFrom({ ...FIELDS, feature: "wind", other });
  assert.deepEqual(plan.ask.at(-1), { question: "contrast", features: ["wind", "temp"], statistic: "mean" });
  assert.deepEqual(plan.other, other);
});

test("times are ranges, the last so many seconds, or hours of each day in a zone", () => {
  assert.equal(timeFrom(FIELDS), null);
  assert.deepEqual(timeFrom({ ...FIELDS, span: "day" }), { last_s: 86_400 });
  const custom = { ...FIELDS, span: "custom", from: "2013-06-01T00:00", to: "" };
  assert.deepEqual(timeFrom(custom), { ranges: [{ from: "2013-06-01T00:00:00.000Z" }] });
  const daily = { ...FIELDS, zone: "local", dailyFrom: "14:00", dailyTo: "16:00" };
  assert.deepEqual(timeFrom(daily), { daily: { from: "14:00", to: "16:00" }, zone: "Asia/Shanghai" });
});

test("what is missing is told at its field", () => {
  assert.deepEqual(faultsOf(FIELDS), {});
  assert.ok(faultsOf({ ...FIELDS, place: null }).where);
  assert.ok(faultsOf({ ...FIELDS, span: "custom", from: "2013-06-02T00:00", to: "2013-06-01T00:00" }).span);
  assert.ok(faultsOf({ ...FIELDS, dailyFrom: "14:00", dailyTo: "" }).daily);
  assert.ok(faultsOf({ ...FIELDS, against: "place" }).against);
  assert.ok(faultsOf({ ...FIELDS, stream: "" }).stream);
});

test("a chart has a readable number of steps", () => {
  const day = 86_400_000;
  assert.deepEqual([day, 30 * day, 200 * day, 1460 * day, 9999 * day].map(everyFor), [
    "hour",
    "day",
    "week",
    "month",
    "year",
  ]);
});

const NOW = Date.UTC(2026, 0, 2);
const stored = (lon, lat, time, properties) => ({ lo: [lon, lat], hi: [lon, lat], time, properties });

test("the history is asked for the box and the span of a plan", () => {
  const triangle = [
    [0, 0],
    [2, 0],
    [0, 2],
  ];
  const plan = {
    stream: "air",
    polygon: triangle,
    time: { ranges: [{ from: "2026-01-01T00:00:00Z", to: "2026-01-01T12:00:00Z" }] },
  };
  assert.deepEqual(questionFor(plan, NOW), {
    type: "table.query",
    table: { stored: "air" },
    limit: 10_000,
    box: { lo: [0, 0], hi: [2, 2] },
    span: { from: "2026-01-01T00:00:00.000Z", to: "2026-01-01T12:00:00.000Z" },
  });
  const rows = [
    stored(0.5, 0.5, "2026-01-01T01:00:00Z", { temp: 4 }),
    stored(0.5, 0.7, "2026-01-01T02:00:00Z", { temp: 8 }),
    stored(0.5, 0.7, "2026-01-01T03:00:00Z", {}),
    stored(1.8, 1.8, "2026-01-01T01:00:00Z", { temp: 99 }),
    stored(0.5, 0.5, "2026-01-01T12:00:00Z", { temp: 99 }),
  ];
  assert.deepEqual(figuresOf(chosenRows(rows, plan, NOW), "temp"), { count: 2, mean: 6, min: 4, max: 8 });
});

test("the last hours end now, and everything has neither box nor span", () => {
  assert.deepEqual(questionFor({ stream: "air", time: { last_s: 3600 } }, NOW).span, {
    from: "2026-01-01T23:00:00.000Z",
  });
  const all = questionFor({ stream: "air" }, NOW);
  assert.deepEqual([all.box, all.span], [undefined, undefined]);
});

test("what cannot be compared is said", () => {
  assert.equal(obstacle({}), "");
  assert.ok(obstacle({ time: { daily: { from: "14:00", to: "16:00" } } }));
  assert.ok(obstacle({ time: { ranges: [{}, {}] } }));
  assert.ok(obstacle({ ranges: [{ feature: "temp", lo: 1 }] }));
});
