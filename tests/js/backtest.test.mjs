import assert from "node:assert/strict";
import { test } from "node:test";

import { namingOf } from "../../static/js/objects/named.js";
import { placeOfRow, progressText, questionOf, resultText, rowText } from "../../static/js/backtest/words.js";

const AT_US = Date.UTC(2026, 10, 21, 14, 3) * 1000;
const told = (summary, more = {}) => ({
  summary: { entered: 0, left: 0, total: 0, ...summary },
  stopped: "",
  at_us: AT_US,
  stored: 9,
  ...more,
});

test("a question has the plan, and a span that ends now", () => {
  assert.deepEqual(questionOf({ stream: "ships" }, "3600", 10_000_000), {
    type: "backtest.start",
    plan: { stream: "ships" },
    span: { from: 6400 },
  });
});

test("what a rule would have done is a number of times", () => {
  assert.equal(resultText(told({ total: 14 }), true, "the last week"), "Would have fired 14 times in the last week.");
  assert.equal(resultText(told({ total: 1 }), true, "the last day"), "Would have fired 1 time in the last day.");
});

test("what a query would have told are entries and exits, apart from who was inside", () => {
  const text = resultText(told({ entered: 2, left: 1, total: 3 }), false, "the last hour");
  assert.equal(
    text,
    "In the last hour, objects would have entered 2 times and left 1 time; 1 was inside at the beginning.",
  );
});

test("a limit that ended it is told, and so is that nothing was stored", () => {
  const stopped = "after 5,000,000 elements, the most that a back-test plays";
  assert.match(
    resultText(told({ total: 2 }, { stopped }), true, "the last week"),
    /It stopped at 2026-11-21 14:03:00.*, after 5,000,000 elements, the most that a back-test plays\.$/,
  );
  assert.match(resultText(told({}, { stored: 0 }), true, "the last hour"), /^Nothing was stored in the last hour/);
  assert.match(
    progressText({ share: 0.426, at_us: AT_US, found: 3 }, true),
    /^42 %, up to 2026-11-21 14:03:00.*: 3 alarms so far$/,
  );
});

test("a row says who, from when, and for how long", () => {
  const row = { key: "anna", partner: null, start_us: AT_US, end_us: AT_US + 300e6 };
  const known = { "ships anna": { name: "MS Anna" }, "tugs berta": { name: "Berta" } };
  const objects = {
    slot: (stream, key) => (`${stream} ${key}` in known ? `${stream} ${key}` : undefined),
    properties: (slot) => known[slot],
  };
  const naming = namingOf({ objects }, { stream: "ships", join: { stream: "tugs" } });
  assert.equal(rowText(row, naming)[0], "MS Anna (anna)");
  assert.match(rowText(row, naming)[1], /for 5 min$/);
  assert.match(rowText({ ...row, end_us: null }, naming)[1], /had not ended$/);
  assert.equal(rowText({ ...row, partner: "berta" }, naming)[0], "MS Anna (anna) with Berta (berta)");
  assert.equal(rowText({ ...row, key: "berta", partner: "anna" }, naming)[0], "berta with anna"); // not in view
});

test("the place of a row is the middle of its box, if it has one", () => {
  assert.deepEqual(placeOfRow({ bounds: [24, 59, null, 26, 61, null] }), [25, 60]);
  assert.equal(placeOfRow({ bounds: [null, 59, null, null, 61, null] }), null);
});
