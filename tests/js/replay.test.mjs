// The clock of a replay, and the elements that were read ahead.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ReplayClock, SPEEDS } from "../../static/js/replay/clock.js";
import { ElementBuffer } from "../../static/js/replay/element-buffer.js";
import { randomOf } from "./helpers.mjs";

const LIFE_MS = 6000;

function clock(atMs = 0) {
  return new ReplayClock({ fromMs: 0, toMs: 100_000, atMs });
}

test("the clock goes as fast as is chosen, and stands while it is paused", () => {
  const one = clock(10_000);
  assert.equal(one.advance(500), 10_000);
  one.play();
  one.speed = 10;
  one.advance(1000);
  assert.equal(one.advance(1200), 12_000);
  one.pause();
  assert.equal(one.advance(9000), 12_000);
  one.play();
  assert.equal(one.advance(20_000), 12_000, "the pause is not made up for");
  assert.equal(one.advance(20_100), 13_000);
});

test("the clock waits where the past is not known yet, and does not jump afterwards", () => {
  const one = clock();
  one.play();
  one.advance(0);
  assert.equal(one.advance(1000, 400), 400);
  assert.equal(one.advance(5000, 400), 400);
  assert.equal(one.advance(5100, Infinity), 500);
});

test("the clock stops at the end, and begins again from there", () => {
  const one = clock(99_000);
  one.play();
  one.advance(0);
  assert.equal(one.advance(2000), 100_000);
  assert.equal(one.playing, false);
  one.play();
  assert.equal(one.atMs, 0);
});

test("a time outside of the span is the nearest end, and speeds have a first and a last", () => {
  const one = clock(-5);
  assert.equal(one.atMs, 0);
  one.shift(-1);
  assert.equal(one.speed, 1);
  for (let i = 0; i < 20; i++) one.shift(1);
  assert.equal(one.speed, 3600);
  assert.deepEqual(
    [1, 10, 60, 600, 3600].filter((speed) => !SPEEDS.includes(speed)),
    [],
  );
  one.within(40_000, 60_000);
  assert.equal(one.atMs, 40_000);
});

/** A page of rows `[at, sign, key]` that tells the scene in its first `held` rows. */
function page(fromMs, untilMs, held, ...told) {
  const column = (read) => told.map(read);
  const numbers = (read) => Float64Array.from(told, read);
  const rows = {
    length: told.length,
    sign: Int8Array.from(told, ([, sign]) => sign),
    reason: column(() => "moved"),
    keys: column(([, , key]) => key),
    properties: column(() => "{}"),
    ...Object.fromEntries(["timeMs", "atMs", "lon", "lat", "alt"].map((name) => [name, numbers(([at]) => at)])),
  };
  return { fromMs, untilMs, scene: held, life_us: LIFE_MS * 1000, rows };
}

/** Deterministic random reports of some objects, as the server cuts them into pages. */
function story(seed, cuts) {
  const random = randomOf(seed);
  const inside = new Set();
  const told = Array.from({ length: 400 }, (_, i) => [1000 + i * 100, "abcdefgh"[random(8)], random(3) > 0]);
  const rows = [];
  for (const [at, key, is] of told) {
    if (is || inside.has(key)) rows.push([at, is ? 1 : -1, key]);
    if (is) inside.add(key);
    else inside.delete(key);
  }
  const ends = [...cuts, 60_000];
  return {
    rows,
    pages: ends.map((end, i) =>
      page(ends[i - 1] ?? 0, end, 0, ...rows.filter(([at]) => at > (ends[i - 1] ?? 0) && at <= end)),
    ),
  };
}

function shownAt(rows, ms) {
  const last = new Map(rows.filter(([at]) => at <= ms).map(([at, sign, key]) => [key, [at, sign]]));
  return [...last]
    .filter(([, [at, sign]]) => sign > 0 && ms - at <= LIFE_MS)
    .map(([key, [at]]) => `${key}@${at}`)
    .sort();
}

function scene(rows) {
  return Array.from(rows.keys, (key, i) => `${key}@${rows.atMs[i]}`).sort();
}

function filled({ pages: [first, ...others] }) {
  const buffer = new ElementBuffer(first);
  for (const other of others) buffer.add(other);
  return buffer;
}

test("the scene at a time is that of brute force, wherever pages are cut", () => {
  for (const cuts of [[], [20_000], [1050, 9000, 9001, 30_000]]) {
    const told = story(7, cuts);
    const buffer = filled(told);
    for (let ms = 0; ms < 60_000; ms += 730)
      assert.deepEqual(scene(buffer.seek(ms)), shownAt(told.rows, ms), `${cuts} at ${ms}`);
  }
});

test("what changes leads from any scene to the next, at any speed", () => {
  for (const step of [90, 1300, 25_000]) {
    const told = story(11, [5000, 17_000]);
    const buffer = filled(told);
    const shown = new Map(buffer.seek(0).keys.map((key) => [key, 0]));
    for (let ms = step; ms < 60_000; ms += step) {
      const rows = buffer.advance(ms);
      assert.equal(new Set(rows.keys).size, rows.length, "an object changes once a step");
      rows.keys.forEach((key, i) => (rows.sign[i] < 0 ? shown.delete(key) : shown.set(key, rows.atMs[i])));
      assert.deepEqual(
        [...shown].map(([key, at]) => `${key}@${at}`).sort(),
        shownAt(told.rows, ms),
        `by ${step} at ${ms}`,
      );
    }
  }
});

test("pages that were played are forgotten, and what follows stays as it was", () => {
  const told = story(13, [5000, 17_000, 30_000]);
  const buffer = filled(told);
  buffer.seek(31_000);
  buffer.forget(20_000, 10);
  assert.equal(buffer.fromMs, 17_000);
  assert.equal(buffer.knows(16_999), false);
  for (const ms of [17_000, 18_000, 31_000, 45_000]) assert.deepEqual(scene(buffer.seek(ms)), shownAt(told.rows, ms));
});

test("a page that follows is known once it is there", () => {
  const { rows, pages } = story(17, [10_000]);
  const buffer = new ElementBuffer(pages[0]);
  buffer.advance(10_000);
  assert.equal(buffer.knows(10_001), false);
  buffer.add(pages[1]);
  buffer.advance(40_000);
  assert.deepEqual(scene(buffer.seek(40_000)), shownAt(rows, 40_000));
});
