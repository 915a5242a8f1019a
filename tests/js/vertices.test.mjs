import assert from "node:assert/strict";
import { test } from "node:test";

import { drawn, geometryOf, linesOf, middlesOf, opened, removePoint } from "../../static/js/map/vertices.js";

const SQUARE = [
  [0, 0],
  [1, 0],
  [1, 1],
  [0, 1],
  [0, 0],
];
const GEOMETRIES = [
  { type: "Point", coordinates: [1, 2] },
  {
    type: "MultiPoint",
    coordinates: [
      [1, 2],
      [3, 4],
    ],
  },
  {
    type: "LineString",
    coordinates: [
      [1, 2],
      [3, 4],
    ],
  },
  {
    type: "MultiLineString",
    coordinates: [
      [
        [1, 2],
        [3, 4],
      ],
      [
        [5, 6],
        [7, 8],
      ],
    ],
  },
  {
    type: "Polygon",
    coordinates: [
      SQUARE,
      [
        [0.2, 0.2],
        [0.4, 0.2],
        [0.4, 0.4],
        [0.2, 0.2],
      ],
    ],
  },
  {
    type: "MultiPolygon",
    coordinates: [
      [SQUARE],
      [
        [
          [5, 5],
          [6, 5],
          [6, 6],
          [5, 5],
        ],
      ],
    ],
  },
];

for (const geometry of GEOMETRIES) {
  test(`a ${geometry.type} that was not changed is saved as it was, and never changed itself`, () => {
    const before = structuredClone(geometry);
    const shape = opened(geometry, 360);
    assert.deepEqual(geometryOf(shape, 360), geometry);
    linesOf(shape)[0][0][0] += 1;
    assert.deepEqual(geometry, before);
    assert.notDeepEqual(geometryOf(shape, 360), geometry);
  });
}

test("moving the first corner of a ring moves its last one as well", () => {
  const shape = opened(GEOMETRIES[4]);
  const [ring] = linesOf(shape);
  assert.equal(ring.length, 4);
  ring[0] = [-1, -1];
  const [saved] = geometryOf(shape).coordinates;
  assert.deepEqual(
    [saved[0], saved.at(-1)],
    [
      [-1, -1],
      [-1, -1],
    ],
  );
});

test("a ring has a middle on its last edge too, a line has none there, points have none", () => {
  const middles = (geometry) => {
    const shape = opened(geometry);
    return middlesOf(shape, linesOf(shape)[0]);
  };
  assert.deepEqual(middles(GEOMETRIES[4]).at(-1), { at: 4, place: [0, 0.5] });
  assert.deepEqual(middles(GEOMETRIES[2]), [{ at: 1, place: [2, 3] }]);
  assert.deepEqual(middles(GEOMETRIES[1]), []);
});

test("a corner is removed as long as enough are left", () => {
  const shape = opened(GEOMETRIES[4]);
  const [ring] = linesOf(shape);
  assert.ok(removePoint(shape, ring, 0));
  assert.ok(!removePoint(shape, ring, 0));
  assert.equal(ring.length, 3);
});

test("what is drawn is a geometry once it has points enough", () => {
  assert.equal(
    drawn("Polygon", [
      [0, 0],
      [1, 0],
    ]),
    null,
  );
  assert.deepEqual(
    geometryOf(
      drawn("Polygon", [
        [0, 0],
        [1, 0],
        [1, 1],
      ]),
    ).coordinates,
    [
      [
        [0, 0],
        [1, 0],
        [1, 1],
        [0, 0],
      ],
    ],
  );
  assert.deepEqual(
    geometryOf(
      drawn("LineString", [
        [0, 0],
        [1, 0],
      ]),
    ).coordinates,
    [
      [0, 0],
      [1, 0],
    ],
  );
  assert.deepEqual(geometryOf(drawn("Point", [[0, 0]])).coordinates, [0, 0]);
});

test("a collection of geometries cannot be edited", () => {
  assert.equal(opened({ type: "GeometryCollection", geometries: [] }), null);
});
