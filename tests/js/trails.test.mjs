// Trails are as long and as close as their memory allows.

import assert from "node:assert/strict";
import test from "node:test";

import { MOST_POINTS, Trails } from "../../static/js/objects/trails.js";

const MINUTE_MS = 60_000;

/** Return trails that have a report of one object every some seconds. */
function reported(trails, minutes, everyS) {
  for (let i = 0; i * everyS <= 60 * minutes; i++)
    trails.add(0, (i * everyS) / 1e6, 0.25, 1e12 + Math.round(1000 * everyS * i), [i, NaN, NaN]);
  return trails;
}

test("a trail has the places since a time, whatever the number of reports", () => {
  for (const [minutes, everyS] of [
    [1, 0.2],
    [5, 1],
    [15, 2],
    [60, 2],
    [60, 30],
  ]) {
    const trails = new Trails();
    trails.keep(minutes);
    reported(trails, 2 * minutes, everyS);
    const endMs = 1e12 + 2 * minutes * MINUTE_MS;
    const { n, timeMs, x } = trails.read(0, endMs - minutes * MINUTE_MS);
    assert.ok(n <= MOST_POINTS && n >= Math.min(MOST_POINTS / 3, (60 * minutes) / everyS));
    assert.equal(timeMs[n - 1], endMs);
    assert.ok(
      timeMs[0] - (endMs - minutes * MINUTE_MS) < (3 * minutes * MINUTE_MS) / MOST_POINTS + 1000 * everyS,
      `${minutes} min begin at the right time`,
    );
    assert.ok(Math.abs(x[n - 1] - (120 * minutes) / 1e6) < 1e-9);
  }
});

test("a place has the value of its time, and the chosen property is forgotten with the choice", () => {
  const trails = new Trails();
  for (let i = 0; i < 5; i++) trails.add(3, 0.5, 0.5, 1000 * i * 60, [i, 10 * i, 100 * i]);
  const values = (name) => {
    const { n, value } = trails.read(3, 0, name);
    return [...value.subarray(0, n)];
  };
  assert.deepEqual(values("altitude"), [0, 10, 20, 30, 40]);
  assert.deepEqual(values("chosen"), [0, 100, 200, 300, 400]);
  trails.forgetChosen();
  assert.ok(values("chosen").every(Number.isNaN));
  assert.deepEqual(values("speed"), [0, 1, 2, 3, 4]);
});

test("the memory of all trails is bounded, and freed with the objects", () => {
  const trails = new Trails();
  const most = 2_000_000 + 300_000 * 8 + MOST_POINTS;
  for (let round = 0; round < 20; round++)
    for (let slot = 0; slot < 40_000; slot++) trails.add(slot, 0.5, 0.5, round * MINUTE_MS, [1, 2, 3]);
  assert.ok(trails.points <= most);
  assert.equal(trails.read(39_999).n, 20);
  for (let slot = 0; slot < 40_000; slot++) trails.remove(slot);
  assert.equal(trails.points, 0);
  assert.equal(trails.read(5).n, 0);
});

test("the edges of the world are kept", () => {
  const trails = new Trails();
  [
    [0, 0],
    [1, 1],
    [0.999_999_999_9, 0.5],
  ].forEach(([x, y], i) => trails.add(0, x, y, i * MINUTE_MS, [0, 0, 0]));
  const { x, y } = trails.read(0);
  const turn = (value) => Math.min(Math.abs(value % 1), 1 - Math.abs(value % 1));
  assert.ok(turn(x[0]) < 1e-9 && turn(x[1]) < 1e-9 && turn(x[2]) < 1e-9);
  assert.ok(y[0] < 1e-9 && y[1] > 1 - 1e-9);
});
