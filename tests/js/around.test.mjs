import assert from "node:assert/strict";
import { test } from "node:test";

import {
  circle,
  destination,
  distance,
  dragged,
  handlesOf,
  localMetres,
  LONGEST_M,
  polygon,
  rectangle,
  shapeOf,
  stepped,
} from "../../static/js/around.js";

const HERE = [24.5, 59.7];
const near = (a, b, slack) => assert.ok(Math.abs(a - b) <= slack, `${a} is not within ${slack} of ${b}`);

test("every corner of a circle is as far away as the radius, at all latitudes and across the antimeridian", () => {
  for (const place of [HERE, [179.9, 0], [-179.9, -75], [0, 89]]) {
    for (const radius of [50, 9260, 500_000]) {
      for (const corner of circle(place, radius).ring.slice(0, 96))
        near(distance(place, corner), radius, radius * 1e-6 + 1e-3);
    }
  }
});

test("a circle's ring never jumps by a turn", () => {
  for (const [place, radius] of [
    [[179.9, 10], 50_000],
    [[20, 80], 2_000_000],
    [[20, -80], 2_000_000],
    [[0, 0], 15_000_000],
  ]) {
    const { ring } = circle(place, radius);
    for (let i = 1; i < 97 && i < ring.length; i++) assert.ok(Math.abs(ring[i][0] - ring[i - 1][0]) < 180);
  }
});

test("a circle that holds a pole reaches to the edge of the map there; one that holds both is a line", () => {
  const north = circle([20, 80], 2_000_000);
  near(Math.abs(north.ring.at(-1)[0] - north.ring.at(-2)[0]), 360, 1e-6);
  assert.ok(north.filled && north.ring.at(-1)[1] > 85);
  assert.ok(circle([20, -80], 2_000_000).ring.at(-1)[1] < -85);
  assert.equal(circle([0, 0], 15_000_000).filled, false);
});

test("a degree is as long as the engine says", () => {
  assert.deepEqual(localMetres(0).map(Math.round), [111_319, 110_574]);
});

test("a rectangle is as wide as it says; without a width it goes around the earth", () => {
  const [[west, south], , [east, north]] = rectangle(HERE, [1000, 2000]);
  const [perLon, perLat] = localMetres(HERE[1]);
  near((east - west) * perLon, 2000, 1e-6);
  near((north - south) * perLat, 4000, 1e-6);
  assert.deepEqual(
    rectangle([0, 0], [null, 1000]).map(([lon]) => lon),
    [-180, 180, 180, -180],
  );
  assert.deepEqual(
    rectangle([0, 0], [1000]).map(([, lat]) => lat),
    [-90, -90, 90, 90],
  );
});

test("a polygon is carried along, east first", () => {
  const [perLon, perLat] = localMetres(HERE[1]);
  const [east, north] = polygon(HERE, [
    [1000, 0],
    [0, 1000],
    [-1, -1],
  ]);
  near((east[0] - HERE[0]) * perLon, 1000, 1e-6);
  near((north[1] - HERE[1]) * perLat, 1000, 1e-6);
});

test("neighbours have a shape where they may be only so far away", () => {
  assert.equal(shapeOf({ around: { key: "a" }, kind: "knn" }, HERE), null);
  assert.deepEqual(shapeOf({ around: { key: "a" }, max_distance: 500 }, HERE), { ...circle(HERE, 500), filled: false });
  assert.equal(shapeOf({ around: { radius: 5, key: "a" } }, HERE).filled, true);
});

test("handles are where the range ends, and a fixed place has one of its own", () => {
  const names = (around, more = {}) => Object.keys(handlesOf({ around, ...more }, HERE));
  assert.deepEqual(names({ key: "a", radius: 500 }), ["radius"]);
  assert.deepEqual(names({ at: HERE, radius: 500 }), ["place", "radius"]);
  assert.deepEqual(names({ key: "a", half_widths: [5, 6] }), ["across", "along", "both"]);
  assert.deepEqual(names({ key: "a", half_widths: [null, 6] }), ["along"]);
  assert.deepEqual(names({ key: "a", polygon: [] }), []);
  assert.deepEqual(names({ at: HERE }), ["place"]);
  assert.deepEqual(names({ at: HERE }, { max_distance: 500 }), ["place", "farthest"]);
});

test("a handle that is put where it was changes next to nothing, and moves what it is for", () => {
  const plan = { k: 3, around: { key: "a", radius: 9260 } };
  assert.deepEqual(dragged(plan, HERE, "radius", handlesOf(plan, HERE).radius), plan);
  assert.deepEqual(dragged(plan, HERE, "radius", destination(HERE, 200, 12_345)), {
    k: 3,
    around: { key: "a", radius: 12_300 },
  });
  const box = { around: { key: "a", half_widths: [5000, 6000, 100] } };
  const handles = handlesOf(box, HERE);
  for (const name of ["across", "along", "both"]) assert.deepEqual(dragged(box, HERE, name, handles[name]), box);
  const wider = dragged(box, HERE, "across", destination(HERE, 270, 8000)).around.half_widths;
  assert.deepEqual(wider.slice(1), [6000, 100]);
  near(wider[0], 8000, 40);
  assert.deepEqual(dragged({ around: { at: HERE, radius: 5 } }, HERE, "place", [190, 10]), {
    around: { at: [-170, 10], radius: 5 },
  });
  assert.equal(dragged(plan, HERE, "radius", HERE).around.radius, 1);
  const nearest = { kind: "knn", around: { key: "a" }, max_distance: 9260 };
  assert.deepEqual(dragged(nearest, HERE, "farthest", destination(HERE, 200, 12_345)), {
    ...nearest,
    max_distance: 12_300,
  });
});

test("a step is a tenth of the length's first digit's unit, there and back, from a metre to the whole earth", () => {
  const radius = (metres, steps) => stepped({ around: { key: "a", radius: metres } }, "radius", steps).around.radius;
  assert.deepEqual([radius(9260, 1), radius(9360, -1), radius(9260, -10)], [9360, 9260, 8260]);
  assert.deepEqual([radius(52_000, 1), radius(5, 1), radius(47, 10)], [53_000, 6, 57]);
  assert.deepEqual([radius(3, -10), radius(20_000_000, 1)], [1, LONGEST_M]);
  const plan = { around: { key: "a", half_widths: [5000, 600, 100] }, max_distance: 70 };
  assert.deepEqual(stepped(plan, "across", 1).around.half_widths, [5100, 600, 100]);
  assert.deepEqual(stepped(plan, "along", -1).around.half_widths, [5000, 590, 100]);
  assert.equal(stepped(plan, "farthest", 1).max_distance, 71);
});
