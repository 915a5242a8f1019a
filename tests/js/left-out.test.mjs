import assert from "node:assert/strict";
import test from "node:test";

import { isLeftOut, leftOut, leftOutText } from "../../static/js/queries/left-out.js";
import { stateText } from "../../static/js/states.js";
import { NOW, status } from "./helpers.mjs";

const told = (cause, error) => ({ cause, error, until: new Date(NOW).toISOString() });

test("a query for which there is no room says why, when it is tried again, and that an edit tries it at once", () => {
  const query = status(1, { left_out: told("room", "it would compare too many pairs") });
  assert.equal(
    leftOutText(query, NOW - 60_000, "UTC"),
    "Left out, because it would compare too many pairs. It is tried again at 12:00:00, and at once if you edit it.",
  );
  assert.equal(stateText("left_out"), "left out");
});

test("a query that failed says that it failed, and a rule that watches one is not left out itself", () => {
  const failed = status(1, { left_out: told("failure", "ValueError: no") });
  assert.match(leftOutText(failed, NOW, "UTC"), /^Left out, because it failed: ValueError: no\. It is tried again/);
  const rule = status(2, { left_out: told("watched", "it watches query 1, Roads, which is left out") });
  assert.match(leftOutText(rule, NOW, "UTC"), /^No object enters by this rule: it watches query 1, Roads,/);
  assert.deepEqual([isLeftOut(failed, NOW), isLeftOut(rule, NOW)], [true, false]);
});

test("a query is not left out any more once it was tried again without another failure, or does not run", () => {
  const query = status(1, { left_out: told("room", "too many") });
  assert.ok(leftOut(query, NOW + 9_000));
  assert.equal(leftOut(query, NOW + 10_000), null);
  assert.equal(leftOutText(query, NOW + 10_000), "");
  assert.equal(leftOut({ ...query, status: "paused" }, NOW - 1), null);
  assert.equal(isLeftOut(status(2, { left_out: null }), NOW), false);
});
