import assert from "node:assert/strict";
import { test } from "node:test";

import { ALL, AnswerTrack, NONE, SCENE } from "../../static/js/replay/answer-track.js";

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

test("the answers at the time of a jump are asked for first, and say what is missing", async () => {
  const { track, asked } = slow(20_000);
  const rows = { length: 1, queries: [1], atMs: [600_000], keys: ["anna"] };
  track.queries = () => [1, 2];
  track.askScene = async (queries, { fromMs }, atMs) => {
    asked.push([...queries, fromMs, atMs]);
    return { begins: true, fromMs: atMs, untilMs: atMs, queries: [1], rows };
  };
  track.follow();
  assert.deepEqual([track.known(600_000), track.missing(600_000)], [NONE, [1, 2]]);
  await ahead(track, 600_000, 1);
  assert.deepEqual(asked, [[1, 2, 540_000, 600_000]]);
  assert.deepEqual([track.known(600_000), track.missing(600_000)], [SCENE, [2]]);
  assert.deepEqual(
    track.scene().map(({ type, query, rows: { keys } }) => [type, query, keys]),
    [["answer.snapshot", 1, ["anna"]]],
  );
  await ahead(track, 600_000, 1);
  assert.deepEqual(track.progress(600_000), { untilMs: 560_000, share: 1 / 3 });
  await ahead(track, 600_000, 3);
  assert.deepEqual([track.known(600_000), track.missing(600_000)], [ALL, []]);
  assert.deepEqual(track.known(500_000), NONE);
});

test("a jump does not wait for a page that is on its way to another time", async () => {
  const { track } = slow(20_000);
  const asked = [];
  track.ask = (_queries, { fromMs }, signal) => {
    asked.push([fromMs, signal]);
    return new Promise(() => {});
  };
  await ahead(track, 600_000, 2);
  await ahead(track, 2_000_000, 2);
  assert.deepEqual(
    asked.map(([fromMs, signal]) => [fromMs, signal.aborted]),
    [
      [540_000, true],
      [1_940_000, false],
    ],
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

test("answers that cannot be told do not keep the replay from going on", async () => {
  const errors = [];
  const track = new AnswerTrack({
    clock: { fromMs: 0, toMs: 10_000 },
    queries: () => [1],
    revisions: () => [1],
    ask: () => Promise.reject(new Error("too many")),
    onTold: () => {},
    onRefused: () => {},
    onError: (text) => errors.push(text),
  });
  track.follow();
  track.readAhead(2000, 10_000);
  await new Promise(setImmediate);
  assert.deepEqual([errors, track.knows(2000)], [["too many"], true]);
});
