// Hulls to scale, and lines ahead.

import assert from "node:assert/strict";
import test from "node:test";

import { vectorOf } from "../../static/js/map/course-vectors.js";
import { latitudeOf, mercatorPerMetre, mercatorY } from "../../static/js/geometry.js";
import { cornersOf, headingOf, hullOf, Hulls } from "../../static/js/map/hulls.js";
import { waysAhead } from "../../static/js/kinds/approach/drawing.js";

const near = (a, b, within = 1e-6) =>
  assert.ok(
    a.every((value, i) => Math.abs(value - b[i]) < within),
    `${a} is not ${b}`,
  );

test("a hull is known by its sides or its length and width, and reaches around its antenna", () => {
  assert.deepEqual(hullOf('{"length_m":100,"width_m":20}'), { bow: 50, stern: 50, port: 10, starboard: 10 });
  const sides = '{"to_bow_m":80,"to_stern_m":20,"to_port_m":5,"to_starboard_m":15,"length_m":100,"width_m":20}';
  assert.deepEqual(hullOf(sides), { bow: 80, stern: 20, port: 5, starboard: 15 });
  for (const text of [
    "{}",
    '{"length_m":100}',
    '{"length_m":0,"width_m":0}',
    '{"length_m":20,"width_m":100}',
    '{"length_m":5000,"width_m":20}',
  ])
    assert.equal(hullOf(text), null);
  assert.equal(headingOf('{"heading_deg":90}', 10), 90);
  assert.equal(headingOf("{}", 10), 10);
});

test("the bow points where the ship heads, and the scale is that of the map", () => {
  const hull = { bow: 80, stern: 20, port: 5, starboard: 15 };
  near(cornersOf(hull, 0, 2)[0], [10, -160]);
  near(cornersOf(hull, 90, 2)[0], [160, 10]);
  const [xs, ys] = [0, 1].map((axis) => cornersOf(hull, 0, 1).map((corner) => corner[axis]));
  near([Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)], [-5, 15, -80, 20]);
  near([mercatorPerMetre(mercatorY(60)) * 40_030_229], [2], 1e-3);
});

test("hulls are placed where they are longer than symbols, and found by the pointer", () => {
  const objects = {
    y: [0.5, 0.5, 0.5],
    texts: ['{"length_m":200,"width_m":30}', '{"length_m":20,"width_m":5}', "{}"],
    course: [90, 90, 90],
  };
  const visible = { n: 3, slots: [0, 1, 2], x: [100, 100, 100], y: [100, 300, 500] };
  const hulls = new Hulls(objects);
  hulls.place(visible, { world: 256 * 2 ** 16, size: 21 });
  assert.deepEqual([...hulls.shown.keys()], [0]);
  assert.equal(hulls.at(135, 100), 0);
  assert.equal(hulls.at(100, 135), undefined);
  hulls.place(visible, { world: 256 * 2 ** 9, size: 21 });
  assert.equal(hulls.shown.size, 0);
});

test("the line ahead ends where the object will be", () => {
  const y = mercatorY(60);
  const objects = { y: [y, y, y, y], course: [0, 90, NaN, 45], speed: [10, 10, 10, 0] };
  const [, down] = vectorOf(objects, 0, 600);
  near([latitudeOf(y + down)], [60 + 6000 / 111_195], 1e-3);
  const [right] = vectorOf(objects, 1, 600);
  near([right * 360], [(6000 / 111_195) * 2], 1e-3);
  assert.deepEqual([vectorOf(objects, 2, 600), vectorOf(objects, 3, 600)], [null, null]);
});

test("objects of a predicted entry that is shown have a way ahead", () => {
  const objects = { queries: [[7], [], [8, 7], [9]] };
  const plan = { kind: "approach", within_s: 600 };
  const queries = new Map([
    [7, { query: 7, plan, colour: 2, shown: true }],
    [8, { query: 8, plan: { kind: "range" }, colour: 3, shown: true }],
    [9, { query: 9, plan, colour: 4, shown: false }],
  ]);
  assert.deepEqual(waysAhead(objects, { n: 4, slots: [3, 2, 1, 0] }, queries), [
    [1, 600, 2],
    [3, 600, 2],
  ]);
});
