import assert from "node:assert/strict";
import { test } from "node:test";

import { featureRank, featureStyle, turnOf, viewOf } from "../../static/js/layers/features.js";

const HERE = { west: 10, south: 50, east: 20, north: 60 };
const moved = (dx, dy = 0) => ({ west: 10 + dx, south: 50 + dy, east: 20 + dx, north: 60 + dy });

test("what was fetched for a view serves a small move, and no other zoom or version", () => {
  const view = viewOf(HERE, 8, 1);
  assert.deepEqual(view.bbox, [7, 47, 23, 63]);
  assert.ok(view.serves(viewOf(moved(2, -2), 8, 1)));
  assert.ok(!view.serves(viewOf(moved(4), 8, 1)));
  assert.ok(!view.serves(viewOf(HERE, 9, 1)));
  assert.ok(!view.serves(viewOf(HERE, 8, 2)));
});

test("what was cut off serves no other view: nearer features may be missing", () => {
  const view = viewOf(HERE, 8, 1);
  view.truncated = true;
  assert.ok(view.serves(viewOf(HERE, 8, 1)));
  assert.ok(!view.serves(viewOf(moved(1), 8, 1)));
});

test("a view across the antimeridian asks for a box that ends beyond 180", () => {
  const { bbox } = viewOf({ west: 175, south: 0, east: 185, north: 10 }, 5, 1);
  assert.deepEqual(bbox, [172, -3, 188, 13]);
});

test("a view after many turns is served by the features of its own copy of the world", () => {
  const view = viewOf(HERE, 8, 1);
  const around = viewOf({ ...HERE, west: 370, east: 380 }, 8, 1);
  assert.deepEqual(around.bbox, view.bbox);
  assert.ok(!view.serves(around));
  assert.equal(
    turnOf(
      {
        type: "Polygon",
        coordinates: [
          [
            [12, 55],
            [13, 55],
            [13, 56],
            [12, 55],
          ],
        ],
      },
      375,
    ),
    360,
  );
});

test("points lie above lines, lines above areas", () => {
  const rank = (type, more) => featureRank({ type, ...more });
  assert.deepEqual(
    ["MultiPolygon", "LineString", "Point"].map((type) => rank(type)),
    [0, 1, 2],
  );
  assert.equal(rank("GeometryCollection", { geometries: [{ type: "Point" }, { type: "Polygon" }] }), 0);
});

test("the feature under the pointer stands out, the edited one is not drawn", () => {
  const plain = { rank: 0, colour: "#123", accent: "#456" };
  assert.ok(featureStyle({ ...plain, hovered: true }).fillOpacity > featureStyle(plain).fillOpacity);
  assert.equal(featureStyle({ ...plain, selected: true }).color, "#456");
  const { stroke, fill } = featureStyle({ ...plain, hidden: true });
  assert.deepEqual([stroke, fill], [false, false]);
});
