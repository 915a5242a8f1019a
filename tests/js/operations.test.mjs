import assert from "node:assert/strict";
import { test } from "node:test";

import { extended, figure, rates, ratios, times, withGaps } from "../../static/js/operations/series.js";

const entry = (s, count, batches = count) => ({ at_us: s * 1e6, count, batches });
const count = (told) => told.count;

test("a rate is the growth per second, and unknown at the start, at a restart and behind a gap", () => {
  const past = [entry(0, 10), entry(5, 60), entry(10, 5), entry(15, 10), entry(60, 100)];
  assert.deepEqual(rates(past, count), [null, 10, null, 1, null]);
});

test("the time of a stage is divided by the batches, of which there may be none", () => {
  const past = [entry(0, 0, 0), entry(5, 10, 20), entry(10, 10, 20)];
  assert.deepEqual(
    ratios(past, count, (told) => told.batches),
    [null, 0.5, null],
  );
});

test("no line crosses a gap", () => {
  assert.deepEqual(withGaps(times([entry(0), entry(5), entry(90)]), [[1, 2, 3]]), [
    [0, 5, 89.999, 90],
    [1, 2, null, 3],
  ]);
});

test("the past grows by what is new, and ends after an hour", () => {
  assert.deepEqual(
    extended([entry(0), entry(5)], [entry(5), entry(10)]).map(({ at_us }) => at_us / 1e6),
    [0, 5, 10],
  );
  assert.deepEqual(extended([entry(0)], [entry(3601)]).length, 1);
});

test("figures are short and have their unit", () => {
  assert.equal(figure(12_345), "12.3 k");
  assert.equal(figure(3_100_000, "B"), "3.1 MB");
  assert.equal(figure(900, "B"), "900 B");
  assert.equal(figure(12_345, "/s"), "12.3 k/s");
  assert.equal(figure(0.25, "s"), "250 ms");
  assert.equal(figure(0, "s"), "0 s");
  assert.equal(figure(null, "s"), "–");
});
