import assert from "node:assert/strict";
import { test } from "node:test";

import { extentOf, linear, roomy, roundSteps, timeLabels } from "../../static/js/kinds/sketch/scales.js";
import { drawnOf } from "../../static/js/kinds/sketch/svg.js";
import { stepFor, stepsBetween, stepText } from "../../static/js/kinds/sketch/steps.js";

const HOUR = 3_600_000;
const at = (text) => Date.parse(`${text}Z`);

test("round steps lie within the extent, in ones, twos or fives", () => {
  assert.deepEqual(roundSteps(0, 10), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(roundSteps(-13.2, 41), [0, 20, 40]);
  assert.deepEqual(roundSteps(0.11, 0.34), [0.15, 0.2, 0.25, 0.3]);
  assert.deepEqual(roundSteps(3, 3), [3]);
  assert.deepEqual(roundSteps(NaN, NaN), []);
});

test("an extent leaves out what is missing", () => {
  assert.deepEqual(extentOf([3, null, NaN], [-1]), [-1, 3]);
  assert.equal(extentOf([null]), null);
  assert.deepEqual(roomy([0, 100]), [-6, 106]);
  assert.deepEqual(roomy([0, 0]), [-1, 1]);
});

test("of a long line, some points are drawn, the last one among them", () => {
  assert.deepEqual(drawnOf(3), [0, 1, 2]);
  const drawn = drawnOf(43_000);
  assert.ok(drawn.length <= 700 && drawn.at(-1) === 42_999);
  assert.deepEqual(drawnOf(0), []);
});

test("a scale is a straight line", () => {
  const scale = linear([10, 20], [100, 0]);
  assert.deepEqual([10, 15, 20].map(scale), [100, 50, 0]);
});

test("a time axis has years, months, days or hours, whichever are few enough", () => {
  const texts = (from, to) => timeLabels(at(from), at(to)).map(([, text]) => text);
  assert.deepEqual(texts("2013-03-01T00:00", "2017-03-01T00:00"), ["2014", "2015", "2016", "2017"]);
  assert.deepEqual(texts("2013-03-01T00:00", "2013-12-31T00:00"), ["2013-04", "2013-07", "2013-10"]);
  assert.deepEqual(texts("2013-03-01T00:00", "2013-03-04T00:00"), ["03-01", "03-02", "03-03", "03-04"]);
  assert.deepEqual(texts("2013-03-01T10:30", "2013-03-01T14:30"), ["11:00", "12:00", "13:00", "14:00"]);
});

test("a slider has at most 240 steps, which the sketch can tell apart", () => {
  assert.equal(stepFor(0, 100 * HOUR, HOUR), "hour");
  assert.equal(stepFor(0, 100 * HOUR, 24 * HOUR), "day");
  assert.equal(stepFor(at("2013-03-01T00:00"), at("2017-02-28T00:00"), HOUR), "week");
  assert.equal(stepFor(0, at("2026-01-01T00:00"), HOUR), "year");
});

test("steps cover both times and touch each other", () => {
  const months = stepsBetween(at("2013-11-05T03:00"), at("2014-02-01T00:00"), "month");
  assert.deepEqual(
    months.map((step) => stepText(step, "month")),
    ["2013-11", "2013-12", "2014-01", "2014-02"],
  );
  for (let i = 1; i < months.length; i++) assert.equal(months[i][0], months[i - 1][1]);
  const [week] = stepsBetween(at("2026-11-24T12:00"), at("2026-11-24T12:00"), "week");
  assert.equal(stepText(week, "week"), "week of 2026-11-23");
  assert.equal(stepText([0, HOUR], "hour"), "1970-01-01 00:00 to 01:00");
  assert.deepEqual(stepsBetween(NaN, NaN, "day"), []);
});
