import assert from "node:assert/strict";
import test from "node:test";

import { Room, byRank, fitted, labelled, smallestAround, uncrowded } from "../../static/js/map/labels.js";
import { countInView } from "../../static/js/layers/layers.js";
import { createStore } from "../../static/js/store/store.js";
import { NOW, SHIPS, hello, row, snapshot, status } from "./helpers.mjs";

test("of labels that overlap the first one stays", () => {
  const things = [
    [0, 0],
    [5, 5],
    [30, 0],
    [3, 25],
    [31, 1],
  ].map(([x, y], rank) => ({ x, y, rank }));
  assert.deepEqual(
    uncrowded(things, (thing) => thing, [24, 20]).map(({ rank }) => rank),
    [0, 2, 3],
  );
});

test("an object of an answer that lies beyond the view is not counted as in view", () => {
  const store = createStore();
  for (const message of [hello(SHIPS), status(1), snapshot(1, row("+", "near", 1, 1), row("+", "far", 40, 1))])
    store.apply(message, NOW);
  assert.equal(store.objects.byStream.get("ships").size, 2);
  assert.equal(countInView(store.objects, { west: 0, south: 0, east: 2, north: 2 }).get("ships"), 1);
});

function scattered(n, seed = 7) {
  let state = seed;
  const next = () => (state = (state * 16807) % 2147483647) / 2147483647;
  return {
    n,
    x: Float32Array.from({ length: n }, () => 1400 * next()),
    y: Float32Array.from({ length: n }, () => 900 * next()),
  };
}

function place(places, more = {}) {
  const order = Array.from({ length: places.n }, (_, i) => i);
  const how = {
    room: new Room(1400, 900),
    radius: 10,
    height: 14,
    gap: 3,
    order,
    widthOf: () => 60,
    sideOf: () => 1,
    most: 400,
    ...more,
  };
  return labelled(places, how);
}

function boxOf({ x, y }, [i, side], width = 60) {
  const near = x[i] + side * 13;
  return [Math.min(near, near + side * width), y[i] - 7, Math.max(near, near + side * width), y[i] + 7];
}

const apart = (a, b) => a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];

test("names cover neither each other nor a symbol that is not their own", () => {
  const places = scattered(600);
  const found = place(places);
  assert.ok(found.length > 20);
  const boxes = found.map((one) => boxOf(places, one));
  boxes.forEach((box, k) => boxes.slice(k + 1).forEach((other) => assert.ok(apart(box, other))));
  for (const [k, [i]] of found.entries()) {
    for (let j = 0; j < places.n; j++) {
      const symbol = [places.x[j] - 10, places.y[j] - 10, places.x[j] + 10, places.y[j] + 10];
      assert.ok(i === j || apart(boxes[k], symbol));
    }
  }
});

test("a name goes to the left where the right is taken, and nowhere where both sides are", () => {
  const places = { n: 2, x: [200, 240], y: [100, 100] };
  assert.deepEqual(place(places), [
    [0, -1],
    [1, 1],
  ]);
  assert.deepEqual(place({ n: 3, x: [200, 240, 160], y: [100, 100, 100] }), [
    [1, 1],
    [2, -1],
  ]);
  const room = new Room(1400, 900);
  room.add(100, 80, 300, 120);
  assert.deepEqual(place(places, { room }), []);
});

test("no name reaches beyond the screen", () => {
  assert.deepEqual(place({ n: 1, x: [1380], y: [100] }), [[0, -1]]);
  assert.deepEqual(place({ n: 1, x: [700], y: [3] }), []);
});

test("the most important come first, and the others in their order", () => {
  const ranks = [2, 0, 1, 2, 0];
  assert.deepEqual(
    byRank(5, 3, (i) => ranks[i]),
    [1, 4, 2, 0, 3],
  );
  assert.deepEqual(place({ n: 2, x: [200, 500], y: [100, 100] }, { order: [1, 0], most: 1 }), [[1, 1]]);
});

test("ten times as many symbols take about ten times as long, and names are asked only where there may be room", () => {
  let asked = 0;
  const took = (n) => {
    const places = scattered(n);
    const times = [1, 2, 3, 4, 5].map(() => {
      // Processor time, since other programs may take turns with this one: how it is divided is sampled, so a short time in
      // the one part may be told as none.
      const before = process.cpuUsage();
      place(places, { widthOf: () => (asked++, 60) });
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    });
    return Math.min(...times);
  };
  took(10_000); // warm
  const [few, many] = [took(2_000), took(20_000)];
  assert.ok(many < 40 * few + 5, `${few} ms, ${many} ms`);
  asked = 0;
  place(scattered(10_000), { widthOf: () => (asked++, 60) });
  assert.ok(asked < 500, `asked ${asked} times`);
});

const NAME = { smallest: 44, most: 260, height: 18, inset: 6, round: false };
const VIEW = [0, 0, 1000, 800];

test("a name is within its rectangle's width, at the upper edge of what is in view", () => {
  assert.deepEqual(fitted([100, 100, 200, 300], VIEW, NAME), { x: 106, y: 103, width: 88 });
  assert.deepEqual(fitted([-500, -50, 500, 300], VIEW, NAME), { x: 6, y: 3, width: 260 });
});

test("a circle has its name at the top", () => {
  assert.deepEqual(fitted([100, 100, 200, 200], VIEW, { ...NAME, round: true }), { x: 150, y: 91, width: 100 });
});

test("a shape that is too small, or beyond the view, has no name", () => {
  for (const shape of [
    [100, 100, 140, 300],
    [100, 100, 300, 130],
    [-900, 0, -100, 300],
    [-900, 0, 30, 300],
    [0, -500, 300, 12],
  ]) {
    assert.equal(fitted(shape, VIEW, NAME), null);
  }
  assert.equal(fitted([100, 100, 140, 300], VIEW, { ...NAME, round: true }), null);
});

test("the smallest shape around a point is found", () => {
  const square = (half) => [
    [-half, -half],
    [half, -half],
    [half, half],
    [-half, half],
  ];
  const rings = new Map([
    [1, square(10)],
    [2, square(5)],
    [
      3,
      [
        [0, 20],
        [20, 20],
        [0, 40],
      ],
    ],
  ]);
  assert.equal(smallestAround(rings, [0, 0]), 2);
  assert.equal(smallestAround(rings, [7, 0]), 1);
  assert.equal(smallestAround(rings, [2, 22]), 3);
  assert.equal(smallestAround(rings, [19, 39]), undefined);
});
