import assert from "node:assert/strict";
import test from "node:test";

import { questionOf, rough } from "../../static/js/queries/estimate.js";

test("an estimate is told with two digits, in words", () => {
  assert.deepEqual([8_976_543, 1_080_000, 400_000_000, 999, 0].map(rough), [
    "9 million",
    "1.1 million",
    "400 million",
    "1 thousand",
    "0",
  ]);
});

test("the question tells what the query costs and what there is room for, and its answers say what they do", () => {
  const estimate = { pairs: 8_976_543, matches: 12_345, work: 9_099_993, room: 1_080_000 };
  const { question, yes, no } = questionOf(estimate, false);
  assert.match(
    question,
    /about 9 million pairs of objects, and find up to 12 thousand\. A batch has room for about 1\.1/,
  );
  assert.deepEqual([yes, no], ["Add anyway", "Make it smaller"]);
  assert.equal(questionOf(estimate, true).yes, "Save anyway");
});
