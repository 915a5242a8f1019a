import assert from "node:assert/strict";
import test from "node:test";

import { warningTexts } from "../../static/js/queries/warnings.js";
import { NOW, status } from "./helpers.mjs";

const told = (kind, warning, count) => ({ kind, warning, count, last: new Date(NOW).toISOString() });

test("each kind of a query's warnings says what happened, how often, and when last", () => {
  const warnings = [told("doubted", "reports were not believed", 1204), told("failed", "the filter f failed", 1)];
  assert.deepEqual(warningTexts(status(1, { warnings }), NOW, "UTC"), [
    "reports were not believed (1,204 reports, the last at 12:00:00)",
    "the filter f failed (once, at 12:00:00)",
  ]);
  assert.match(warningTexts(status(1, { warnings }), NOW + 86_400_000, "UTC")[0], /the last at 2026-05-01 12:00:00\)$/);
  assert.deepEqual(warningTexts(status(1), NOW, "UTC"), []);
});
