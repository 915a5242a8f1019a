import assert from "node:assert/strict";
import { test } from "node:test";

import { createKept, keptText } from "../../static/js/queries/missed.js";

test("the kept events come page by page, each once, and the card says how many are kept", async () => {
  const pages = new Map([
    [null, { events: ["c", "b"], next: 2, kept: 3 }],
    [2, { events: ["a"], next: null, kept: 3 }],
  ]);
  const asked = [];
  const kept = createKept(7, async (query, before) => {
    asked.push([query, before]);
    return pages.get(before);
  });
  const [first, meanwhile] = await Promise.all([kept.more(), kept.more()]);
  assert.deepEqual([first, meanwhile], [["c", "b"], []]);
  assert.match(keptText(kept), /^2 of the newest 3 events/);
  assert.deepEqual(await kept.more(), ["a"]);
  assert.deepEqual(await kept.more(), []);
  assert.deepEqual(asked, [
    [7, null],
    [7, 2],
  ]);
});

test("a page that fails says why, and can be asked for again", async () => {
  let fails = true;
  const kept = createKept(7, async () => {
    if (fails) throw new Error("The server cannot be reached.");
    return { events: ["a"], next: null, kept: 1 };
  });
  assert.deepEqual(await kept.more(), []);
  assert.equal(kept.failed, "The server cannot be reached.");
  fails = false;
  assert.deepEqual(await kept.more(), ["a"]);
  assert.equal(kept.failed, "");
});
