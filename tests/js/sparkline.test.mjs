import assert from "node:assert/strict";
import { test } from "node:test";

import { steps, words } from "../../static/js/queries/sparkline.js";

test("each value holds until the next, and the last until now", () => {
  assert.equal(
    steps(
      [
        [0, 0],
        [50, 10],
      ],
      0,
      100,
      100,
      24,
    ),
    "M0 22H50L50 2H100",
  );
});

test("what was before the window began lies at its edge", () => {
  assert.equal(
    steps(
      [
        [-500, 0],
        [50, 10],
      ],
      0,
      100,
      100,
      24,
    ),
    "M0 22H50L50 2H100",
  );
});

test("a value that is missing breaks the line", () => {
  assert.equal(
    steps(
      [
        [0, 0],
        [20, null],
        [60, 10],
      ],
      0,
      100,
      100,
      24,
    ),
    "M0 22H20M60 2H100",
  );
});

test("a line that does not change lies in the middle, and one without values is none", () => {
  assert.equal(steps([[0, 7]], 0, 100, 100, 24), "M0 12H100");
  assert.equal(steps([[0, null]], 0, 100), "");
  assert.equal(steps([], 0, 100), "");
});

test("words tell the least and the largest value in their unit", () => {
  assert.equal(
    words(
      [
        [0, 3],
        [5, null],
        [9, 1],
      ],
      300_000,
      (value) => `${value} kn`,
    ),
    "From 1 kn to 3 kn in the last 5 min",
  );
  assert.equal(words([[0, null]], 300_000, String), "No recent value");
});
