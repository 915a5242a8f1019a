// Areas that are polygons, circles or corridors: what they contain, how large they are, how they are drawn and told.

import assert from "node:assert/strict";
import { test } from "node:test";

import { shapeText, square } from "../../static/js/format.js";
import { boxOf, shapedArea } from "../../static/js/kinds/plan.js";
import { planOf } from "../../static/js/kinds/registry.js";
import {
  apart,
  areaAbout,
  boxAround,
  changeOf,
  contains,
  cornersFrom,
  cornersText,
  covers,
  crossesItself,
  drawnAs,
  formOf,
  lineDistance,
  normalised,
  sizeOf,
  steppedLength,
} from "../../static/js/shapes.js";

const SQUARE = {
  type: "Polygon",
  coordinates: [
    [
      [0, 0],
      [4, 0],
      [4, 4],
      [0, 4],
      [0, 0],
    ],
    [
      [1, 1],
      [3, 1],
      [3, 3],
      [1, 3],
      [1, 1],
    ],
  ],
};
const CIRCLE = { circle: { center: [24, 60], radius_m: 5000 } };
const CORRIDOR = {
  corridor: {
    line: [
      [24, 60],
      [25, 60.5],
    ],
    width_m: 2000,
  },
};
const OVER = {
  type: "Polygon",
  coordinates: [
    [
      [170, 0],
      [190, 0],
      [180, 10],
      [170, 0],
    ],
  ],
};

test("the form of an area", () => {
  assert.deepEqual([SQUARE, CIRCLE, CORRIDOR, { lo: [0], hi: [1] }, null, undefined].map(formOf), [
    "polygon",
    "circle",
    "corridor",
    null,
    null,
    null,
  ]);
});

test("a hole is not within a polygon, and longitudes a turn away are", () => {
  assert.ok(contains(SQUARE, [0.5, 0.5]) && !contains(SQUARE, [2, 2]) && !contains(SQUARE, [5, 2]));
  assert.ok(contains(OVER, [-175, 2]) && contains(OVER, [175, 2]) && !contains(OVER, [165, 2]));
});

test("distances are those of the ellipsoid", () => {
  // pyproj.Geod(ellps="WGS84").inv
  assert.ok(Math.abs(apart([24, 60], [24.08, 60.02]) - 4988.02) < 0.1);
  assert.ok(Math.abs(apart([0, 0], [1, 0]) - 111_319.49) < 0.5);
  assert.ok(Math.abs(apart([0, 89.95], [180, 89.95]) - 11_169.4) < 0.1);
  assert.ok(
    Math.abs(
      lineDistance(
        [
          [24, 60],
          [25, 60.5],
        ],
        [24.5, 60.25],
      ),
    ) < 0.2,
  );
});

test("every place that a shape is drawn through is as far away as the shape says", () => {
  for (const { center, radius_m: radius } of [CIRCLE.circle, { center: [179.99, -70], radius_m: 250_000 }]) {
    for (const place of drawnAs({ circle: { center, radius_m: radius } }).ring)
      assert.ok(Math.abs(apart(center, place) / radius - 1) < 1e-3);
  }
  const bent = {
    line: [
      [24, 60],
      [25, 60.5],
      [24.2, 60.4],
    ],
    width_m: 8000,
  };
  const { lines, fill } = drawnAs({ corridor: bent });
  assert.equal(fill.length, 2);
  for (const place of lines.flat()) assert.ok(Math.abs(lineDistance(bent.line, place) / 4000 - 1) < 0.01, place.join());
});

test("the box about a shape holds what it is drawn through", () => {
  for (const area of [CIRCLE, CORRIDOR, OVER, SQUARE]) {
    const box = boxAround(area);
    for (const place of drawnAs(area).lines.flat())
      assert.ok(covers({ lo: box.lo.map((v) => v - 1e-9), hi: box.hi.map((v) => v + 1e-9) }, place));
  }
  assert.deepEqual(boxAround({ circle: { center: [0, 89], radius_m: 500_000 } }).lo[0], null);
});

test("longitudes begin within the world", () => {
  assert.deepEqual(
    normalised({
      type: "Polygon",
      coordinates: [
        [
          [-190, 0],
          [-170, 0],
          [-180, 10],
          [-190, 0],
        ],
      ],
    }),
    OVER,
  );
  assert.deepEqual(normalised({ circle: { center: [200, 10], radius_m: 1 } }).circle.center, [-160, 10]);
});

test("sizes are those of the earth", () => {
  assert.ok(Math.abs(sizeOf(CIRCLE).squareM / (Math.PI * 25e6) - 1) < 1e-6);
  const degree = {
    type: "Polygon",
    coordinates: [
      [
        [0, 0],
        [1, 0],
        [1, 1],
        [0, 1],
        [0, 0],
      ],
    ],
  };
  assert.ok(Math.abs(sizeOf(degree).squareM / 12_308_778_361 - 1) < 5e-3); // pyproj.Geod.polygon_area_perimeter
  assert.equal(square(78.5e6), "78.5\u00a0km²");
  assert.equal(square(1200), "1,200\u00a0m²");
});

test("an outline that crosses itself is found", () => {
  assert.ok(
    crossesItself([
      [0, 0],
      [1, 1],
      [1, 0],
      [0, 1],
      [0, 0],
    ]),
  );
  assert.ok(!crossesItself(SQUARE.coordinates[0]));
});

test("a feature becomes an area, and what cannot be one does not", () => {
  const sizes = { widthM: 1000, radiusM: 10_000 };
  assert.deepEqual(areaAbout({ type: "Point", coordinates: [24, 60, 5] }, sizes), {
    circle: { center: [24, 60], radius_m: 10_000 },
  });
  assert.deepEqual(
    areaAbout(
      {
        type: "LineString",
        coordinates: [
          [1, 2, 3],
          [2, 3, 4],
        ],
      },
      sizes,
    ),
    {
      corridor: {
        line: [
          [1, 2],
          [2, 3],
        ],
        width_m: 1000,
      },
    },
  );
  assert.deepEqual(areaAbout(SQUARE, sizes), SQUARE);
  assert.equal(
    areaAbout(
      {
        type: "MultiLineString",
        coordinates: [
          [
            [1, 2],
            [2, 3],
          ],
        ],
      },
      sizes,
    ),
    null,
  );
  assert.equal(
    areaAbout({ type: "LineString", coordinates: Array.from({ length: 1001 }, (_, i) => [i / 10, 0]) }, sizes),
    null,
  );
});

test("the change that an edit makes is counted among the objects of its stream", () => {
  const places = [
    [0.5, 0.5],
    [2, 2],
    [3.5, 3.5],
    [9, 9],
  ];
  const objects = {
    byStream: new Map([["ships", new Map(places.map((_, i) => [String(i), i]))]]),
    lon: places.map(([x]) => x),
    lat: places.map(([, y]) => y),
  };
  const triangle = {
    type: "Polygon",
    coordinates: [
      [
        [0, 0],
        [2.5, 0],
        [2.5, 2.5],
        [0, 2.5],
        [0, 0],
      ],
    ],
  };
  assert.deepEqual(changeOf(objects, "ships", SQUARE, triangle), { inside: 2, came: 1, left: 1 });
  assert.deepEqual(changeOf(objects, "ships", { lo: [0, 0], hi: [4, 4] }, SQUARE), { inside: 2, came: 0, left: 1 });
  assert.deepEqual(changeOf(objects, "buses", null, SQUARE), { inside: 0, came: 0, left: 0 });
});

test("corners are written and read as text", () => {
  assert.equal(cornersText(SQUARE), null);
  assert.equal(cornersText(CORRIDOR), "24, 60\n25, 60.5");
  assert.deepEqual(cornersFrom("24, 60\n\n 25 60.5 \n26;61"), [
    [24, 60],
    [25, 60.5],
    [26, 61],
  ]);
  assert.equal(cornersFrom("24"), null);
  assert.equal(cornersFrom("24, north"), null);
});

test("steps follow the power of ten", () => {
  assert.deepEqual([steppedLength(5000, 1), steppedLength(950, -1), steppedLength(1, -5)], [5100, 940, 1]);
});

test("areas in words", () => {
  assert.deepEqual([CIRCLE, CORRIDOR, SQUARE, { lo: [0], hi: [1] }].map(shapeText), [
    "in a circle of 5 km",
    "in a corridor of 2 km",
    "in a polygon",
    "",
  ]);
});

test("a plan takes a shape in place of a rectangle, and a rectangle in place of a shape", () => {
  const fields = { stream: "ships", report: "inside", where: "", box: null, aggregate: null };
  const before = {
    stream: "ships",
    kind: "range",
    compare: { lo: [0, 0], hi: [1, 1] },
    report: "inside",
    emit: "changes",
  };
  const shaped = planOf(before, { ...fields, shape: CIRCLE });
  assert.deepEqual(shaped, {
    kind: "range",
    stream: "ships",
    report: "inside",
    where: "",
    emit: "changes",
    area: CIRCLE,
  });
  assert.deepEqual(shapedArea(shaped), CIRCLE);
  assert.ok(Math.abs(boxOf(shaped).lo[1] - 59.9548) < 1e-3);
  const boxed = planOf(shaped, { ...fields, box: { lo: [0, 0], hi: [2, 2] } });
  assert.deepEqual([boxed.area, boxed.compare], [undefined, { lo: [0, 0], hi: [2, 2] }]);
  const join = { source: "layer", name: "ports", predicate: "intersects" };
  assert.deepEqual(planOf({}, { ...fields, report: "join", shape: CORRIDOR, join }).area, CORRIDOR);
  assert.deepEqual(
    planOf({ ...shaped, compare: before.compare }, { ...fields, shape: SQUARE }).compare,
    before.compare,
    "what the form does not show stays",
  );
});
