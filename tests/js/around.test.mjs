import assert from "node:assert/strict";
import { test } from "node:test";

import { circle, destination, distance, dragged, handlesOf, localMetres, polygon, rectangle, shapeOf } from "../../static/js/around.js";

const HERE = [24.5, 59.7];
const near = (a, b, slack) => assert.ok(Math.abs(a - b) <= slack, `${a} is not within ${slack} of ${b}`);

test("every corner of a circle is as far away as the radius, at all latitudes and across the antimeridian", () => {
  for (const place of [HERE, [179.9, 0], [-179.9, -75], [0, 89]]) {
    for (const radius of [50, 9260, 500_000]) {
      for (const corner of circle(place, radius).ring.slice(0, 96)) near(distance(place, corner), radius, radius * 1e-6 + 1e-3);
    }
  }
});

test("a circle's ring never jumps by a turn", () => {
  for (const [place, radius] of [[[179.9, 10], 50_000], [[20, 80], 2_000_000], [[20, -80], 2_000_000], [[0, 0], 15_000_000]]) {
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
  assert.deepEqual(rectangle([0, 0], [null, 1000]).map(([lon]) => lon), [-180, 180, 180, -180]);
  assert.deepEqual(rectangle([0, 0], [1000]).map(([, lat]) => lat), [-90, -90, 90, 90]);
});

test("a polygon is carried along, east first", () => {
  const [perLon, perLat] = localMetres(HERE[1]);
  const [east, north] = polygon(HERE, [[1000, 0], [0, 1000], [-1, -1]]);
  near((east[0] - HERE[0]) * perLon, 1000, 1e-6);
  near((north[1] - HERE[1]) * perLat, 1000, 1e-6);
});

test("neighbours have no shape", () => {
  assert.equal(shapeOf({ key: "a" }, HERE), null);
  assert.equal(shapeOf({ radius: 5, key: "a" }, HERE).filled, true);
});

test("handles are where the range ends, and a fixed place has one of its own", () => {
  assert.deepEqual(Object.keys(handlesOf({ key: "a", radius: 500 }, HERE)), ["radius"]);
  assert.deepEqual(Object.keys(handlesOf({ at: HERE, radius: 500 }, HERE)), ["place", "radius"]);
  assert.deepEqual(Object.keys(handlesOf({ key: "a", half_widths: [5, 6] }, HERE)), ["across", "along", "both"]);
  assert.deepEqual(Object.keys(handlesOf({ key: "a", half_widths: [null, 6] }, HERE)), ["along"]);
  assert.deepEqual(Object.keys(handlesOf({ key: "a", polygon: [] }, HERE)), []);
  assert.deepEqual(Object.keys(handlesOf({ at: HERE }, HERE)), ["place"]);
});

test("a handle that is put where it was changes next to nothing, and moves what it is for", () => {
  const around = { key: "a", radius: 9260 };
  assert.equal(dragged(around, HERE, "radius", handlesOf(around, HERE).radius).radius, 9260);
  assert.deepEqual(dragged(around, HERE, "radius", destination(HERE, 200, 12_345)), { key: "a", radius: 12_300 });
  const box = { key: "a", half_widths: [5000, 6000, 100] };
  const handles = handlesOf(box, HERE);
  for (const name of ["across", "along", "both"]) assert.deepEqual(dragged(box, HERE, name, handles[name]), box);
  const wider = dragged(box, HERE, "across", destination(HERE, 270, 8000)).half_widths;
  assert.deepEqual(wider.slice(1), [6000, 100]);
  near(wider[0], 8000, 40);
  assert.deepEqual(dragged({ at: HERE, radius: 5 }, HERE, "place", [190, 10]), { at: [-170, 10], radius: 5 });
  assert.equal(dragged(around, HERE, "radius", HERE).radius, 1);
});
