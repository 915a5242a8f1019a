import assert from "node:assert/strict";
import { test } from "node:test";

import { cellAt, cellPx, gridOf, levelFor, scaleOf, strengthAt } from "../../static/js/kinds/sketch/cells.js";
import { levelsOf, linesAt } from "../../static/js/kinds/sketch/contours.js";

const WORLD = { west: -180, south: -85, east: 180, north: 85 };

test("cells are asked for as finely as they can be seen, and not finer than the sketch has them", () => {
  assert.equal(cellPx(13, 2), 8);
  assert.equal(levelFor(2, WORLD, 30), 13);
  assert.equal(levelFor(2, WORLD, 9), 9);
  assert.equal(levelFor(8, { west: 23, south: 59, east: 26, north: 61 }, 40), 26);
});

test("a wide view has at most so many cells as the server sends", () => {
  const level = levelFor(4, { west: -180, south: -85, east: 180, north: 85 }, 30);
  assert.ok(2 ** level <= 20_000 * 1.1);
});

test("the density gives way to the objects as its finest cells become large", () => {
  const strengths = [3, 4, 5, 6, 9].map((zoom) => strengthAt(zoom, 16));
  assert.deepEqual(strengths, [1, 1, 0.5, 0, 0]);
});

test("counts of many orders of magnitude are coloured by their logarithm, with powers of ten in the legend", () => {
  const scale = scaleOf([1, 10, 100, 1000], true);
  assert.deepEqual([1, 10, 1000].map(scale.share), [0, 1 / 3, 1]);
  assert.deepEqual(
    scale.ticks.map(([, value]) => value),
    [1, 10, 100, 1000],
  );
  assert.equal(scaleOf([-5, 0, 5], false).share(0), 0.5);
  assert.equal(scaleOf([null], true), null);
  assert.equal(scaleOf([4, 4], true).share(4), 0.5);
});

test("one wild cell does not take the colours from all others", () => {
  const values = [...Array.from({ length: 200 }, (_, i) => i), 1e9];
  assert.equal(scaleOf(values, false).share(1e9), 1);
  assert.ok(scaleOf(values, false).share(100) > 0.4);
});

// Four cells of 90 degrees around the world, one missing in the north.
const CELLS = {
  lo: [
    [-180, 0],
    [-90, 0],
    [0, 0],
    [90, 0],
    [-180, 45],
    [-90, 45],
    [0, 45],
  ],
  hi: [
    [-90, 45],
    [0, 45],
    [90, 45],
    [180, 45],
    [-90, 90],
    [0, 90],
    [90, 90],
  ],
  value: [1, 2, 3, 4, 5, 6, 7],
};

test("a cell is found at a place, on any turn round the world", () => {
  assert.equal(cellAt(CELLS, 10, 50), 6);
  assert.equal(cellAt(CELLS, 370, 10), 2);
  assert.equal(cellAt(CELLS, 100, 50), -1);
});

test("cells around the world make a grid that goes on after its last column", () => {
  const { columns, rows, values, lon, lat } = gridOf(CELLS);
  assert.deepEqual([columns, rows], [5, 2]);
  assert.deepEqual([...values], [1, 2, 3, 4, 1, 5, 6, 7, NaN, 5]);
  assert.deepEqual(lon, [-135, -45, 45, 135, 225]);
  assert.deepEqual(lat, [22.5, 67.5]);
});

test("a contour lies where the values pass its level, in one line", () => {
  const grid = { columns: 3, rows: 2, values: Float64Array.of(0, 10, 20, 0, 10, 20) };
  assert.deepEqual(levelsOf(grid.values), [5, 10, 15]);
  const [line, ...others] = linesAt(grid, 5);
  assert.deepEqual(others, []);
  assert.deepEqual(line.sort(), [
    [0.5, 0],
    [0.5, 1],
  ]);
});

test("a contour around a hill is closed, and none is drawn beside a missing value", () => {
  const values = Float64Array.from({ length: 25 }, (_, i) => (i === 12 ? 10 : 0));
  const [ring] = linesAt({ columns: 5, rows: 5, values }, 5);
  assert.deepEqual(ring[0], ring.at(-1));
  assert.equal(ring.length, 5);
  assert.deepEqual(linesAt({ columns: 3, rows: 2, values: Float64Array.of(0, NaN, 20, 0, NaN, 20) }, 5), []);
});

test("on a saddle the lines do not cross", () => {
  const lines = linesAt({ columns: 2, rows: 2, values: Float64Array.of(10, 0, 0, 10) }, 4);
  assert.deepEqual(
    lines.map((line) => line.length),
    [2, 2],
  );
  const sides = lines.map((line) => new Set(line.map(([x, y]) => Math.sign(x - y))));
  assert.deepEqual(
    sides.map(({ size }) => size),
    [1, 1],
    "each line keeps to one of the low corners",
  );
});

test("every line of a field of waves is whole: its points are neighbours", () => {
  const columns = 40;
  const values = Float64Array.from(
    { length: columns * 30 },
    (_, i) => Math.sin((i % columns) / 3) + Math.cos(Math.floor(i / columns) / 4),
  );
  for (const line of linesAt({ columns, rows: 30, values }, 0.3)) {
    for (let i = 1; i < line.length; i++)
      assert.ok(Math.hypot(line[i][0] - line[i - 1][0], line[i][1] - line[i - 1][1]) < 1.5);
  }
});
