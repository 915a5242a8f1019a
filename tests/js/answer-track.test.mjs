import assert from "node:assert/strict";
import { test } from "node:test";

import { AnswerTrack } from "../../static/js/replay/answer-track.js";

/** A track beside a server that computes so much of the past for a page, and what it was asked for. */
function slow(stepMs) {
  const asked = [];
  const track = new AnswerTrack({
    queries: () => [1],
    revisions: () => [1],
    clock: { fromMs: 0, toMs: 3_600_000 },
    onTold() {},
    onRefused() {},
    onError: assert.fail,
    async ask(_queries, { fromMs, toMs }) {
      asked.push([fromMs, toMs]);
      const rows = { length: 0, queries: [], atMs: [] };
      return { begins: asked.length === 1, fromMs, untilMs: Math.min(toMs, fromMs + stepMs), queries: [1], rows };
    },
  });
  track.follow();
  return { track, asked };
}

async function ahead(track, atMs, times) {
  for (let i = 0; i < times; i++) {
    track.readAhead(atMs, atMs + 60_000, true);
    await new Promise(setImmediate);
  }
}

test("pages that end before the time of a jump are gone on with until they come to it", async () => {
  const { track, asked } = slow(20_000);
  await ahead(track, 600_000, 4);
  assert.ok(track.knows(600_000));
  assert.deepEqual(
    asked.map(([fromMs]) => fromMs),
    [540_000, 560_000, 580_000, 600_000],
  );
});

test("a jump to where no page leads begins anew", async () => {
  const { track, asked } = slow(20_000);
  await ahead(track, 600_000, 1);
  await ahead(track, 900_000, 1);
  await ahead(track, 100_000, 1);
  assert.deepEqual(
    asked.map(([fromMs]) => fromMs),
    [540_000, 840_000, 40_000],
  );
});
