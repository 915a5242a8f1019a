import assert from "node:assert/strict";
import { test } from "node:test";

import * as geometry from "../../static/js/geometry.js";
import { planOf } from "../../static/js/kinds/registry.js";
import {
  cellRings,
  clippedLine,
  clippedRing,
  projected,
  simplified,
  summed,
  withoutSeam,
} from "../../static/js/map/land.js";
import { unwrappedRings } from "../../tools/make_world.mjs";
import { formatHash, parseHash } from "../../static/js/url-state.js";

const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9, `${a} is not ${b}`);

test("Mercator and back is the same place", () => {
  for (const [lon, lat] of [
    [0, 0],
    [-180, 85],
    [24.94, 60.17],
    [179.9, -84],
  ]) {
    near(geometry.longitudeOf(geometry.mercatorX(lon)), lon);
    near(geometry.latitudeOf(geometry.mercatorY(lat)), lat);
  }
});

test("headings go clockwise from north, and all round", () => {
  assert.deepEqual([0, 90, 359.9, 360, -90, 720, NaN, Infinity].map(geometry.headingIndex), [0, 16, 0, 0, 48, 0, 0, 0]);
});

test("a box across the antimeridian starts within [-180, 180) and ends beyond 180", () => {
  assert.deepEqual(geometry.normalisedBox({ west: -190, south: -5, east: -170, north: 5 }), {
    lo: [170, -5],
    hi: [190, 5],
  });
  assert.deepEqual(geometry.normalisedBox({ west: 530, south: -5, east: 550, north: 5 }), {
    lo: [170, -5],
    hi: [190, 5],
  });
});

test("a box wider than the world is the world, and latitudes end at the poles", () => {
  assert.deepEqual(geometry.normalisedBox({ west: -300, south: -95, east: 300, north: 95 }), {
    lo: [-180, -90],
    hi: [180, 90],
  });
});

test("corners may be given in any order", () => {
  assert.deepEqual(geometry.normalisedBox({ west: 3, south: 2, east: 1, north: 0 }), { lo: [1, 0], hi: [3, 2] });
});

test("a rectangle is shown in the copy of the world that is on the screen", () => {
  assert.equal(geometry.rectangleOf({ lo: [170, 0], hi: [190, 1] }, -180).west, -190);
  assert.equal(geometry.rectangleOf({ lo: [170, 0], hi: [190, 1] }, 179).west, 170);
});

test("a box without a bound reaches to the end of the world", () => {
  const belt = { west: -180, south: 46, east: 180, north: 90 };
  assert.deepEqual(geometry.rectangleOf({ lo: [null, 46], hi: [null, null] }, 0), belt);
});

test("a padded view is larger by the share on every side", () => {
  assert.deepEqual(geometry.paddedBox({ west: 0, south: 0, east: 10, north: 20 }, 0.2), { lo: [-2, -4], hi: [12, 24] });
});

test("an element that is nowhere in a dimension, since it is not known where, has no middle in it", () => {
  assert.deepEqual([geometry.middle(Number.MAX_VALUE, Infinity), geometry.middle(Infinity, Infinity)], [NaN, NaN]);
});

test("an element without a dimension has no middle in it", () => {
  assert.deepEqual(
    [geometry.middle(1, 3), geometry.middle(-Infinity, Infinity), geometry.middle(2, Infinity)],
    [2, NaN, 2],
  );
});

test("a clipped ring covers the box where the ring covers it", () => {
  const ring = projected([
    [-90, -60],
    [90, -60],
    [90, 60],
    [-90, 60],
    [-90, -60],
  ]);
  const clip = [0.4, 0.4, 0.6, 0.6];
  const area = (p) => {
    let sum = 0;
    for (let i = 0, j = p.length - 2; i < p.length; j = i, i += 2) sum += p[j] * p[i + 1] - p[i] * p[j + 1];
    return Math.abs(sum / 2);
  };
  near(area(clippedRing(ring, clip)), 0.04);
  assert.equal(clippedRing(ring, [0.9, 0, 1, 0.1]).length, 0);
  assert.equal(clippedRing(ring, [0, 0, 1, 1]), ring.points);
});

test("a clipped line keeps what touches the box, in as many runs as it comes by", () => {
  const line = projected([
    [0, 0],
    [10, 0],
    [20, 0],
    [20, 50],
    [5, 50],
    [5, -1],
  ]);
  const clip = [geometry.mercatorX(-1), geometry.mercatorY(1), geometry.mercatorX(11), geometry.mercatorY(-2)];
  assert.deepEqual(
    clippedLine(line, clip).map((run) => run.length / 2),
    [3, 2],
  );
});

test("simplified shapes keep their ends and lose what is too small to see", () => {
  const line = projected([
    [0, 0],
    [0.001, 0],
    [0.002, 0],
    [10, 0],
  ]);
  assert.deepEqual(
    simplified([line], 0.001).map((s) => s.points.length / 2),
    [2],
  );
  assert.equal(
    simplified(
      [
        projected([
          [0, 0],
          [0.001, 0.001],
        ]),
      ],
      0.01,
    ).length,
    0,
  );
});

test("the cut along the antimeridian is no coast", () => {
  assert.deepEqual(
    withoutSeam([
      [
        [170, 1],
        [180, 1],
        [180, 5],
        [170, 5],
      ],
    ]),
    [
      [
        [170, 1],
        [180, 1],
      ],
      [
        [180, 5],
        [170, 5],
      ],
    ],
  );
});

test("an island on the antimeridian draws no line around the world", () => {
  assert.deepEqual(
    withoutSeam([
      [
        [179, -16],
        [179.99, -16],
        [-179.9, -16],
        [-179, -16],
      ],
    ]),
    [
      [
        [179, -16],
        [179.99, -16],
      ],
      [
        [-179.9, -16],
        [-179, -16],
      ],
    ],
  );
});

test("lines of differences are places on the map, with their box", () => {
  const [line] = summed({ steps: 4, lines: [[1, 2, 1, -1, -2, 2]] });
  assert.deepEqual([...line.points], [0.25, 0.5, 0.5, 0.25, 0, 0.75]);
  assert.deepEqual(line.box, [0, 0.25, 0.5, 0.75]);
});

test("an island on the antimeridian is filled on both sides of the world, and nowhere between", () => {
  const rings = unwrappedRings([
    [179, 0],
    [-179, 0],
    [-179, 1],
    [179, 1],
    [179, 0],
  ]);
  assert.deepEqual(
    rings.map((ring) => ring.map(([lon]) => lon)),
    [
      [179, 181, 181, 179, 179],
      [-181, -179, -179, -181, -181],
    ],
  );
  const plain = [
    [1, 0],
    [2, 0],
    [2, 1],
    [1, 0],
  ];
  assert.deepEqual(unwrappedRings(plain), [plain]);
});

test("the URL brings back the view and the streams", () => {
  const view = { zoom: 7, lat: 60.123, lon: -24.9, streams: ["ships", "a/b,c"] };
  assert.deepEqual(parseHash(formatHash(view)), view);
  assert.equal(parseHash(formatHash({ ...view, streams: null })).streams, null);
  assert.deepEqual(parseHash(formatHash({ ...view, streams: [] })).streams, []);
});

test("a foreign hash is none of ours", () => {
  for (const hash of ["", "#", "#panel", "#1/2", "#5/100/0", "#a/b/c", "#5//3"]) assert.equal(parseHash(hash), null);
});

test("an edited rectangle takes an area along that only repeated it, and spares one of its own", () => {
  const old = { lo: [0, 0], hi: [1, 1] };
  const fields = { stream: "s", report: "inside", where: "", box: { lo: [5, 5], hi: [6, 6] } };
  assert.equal(planOf({ compare: old, area: old }, fields).area, undefined);
  const area = { lo: [-9, -9], hi: [9, 9] };
  assert.deepEqual(planOf({ compare: old, area, report: "inside" }, fields).area, area);
});

test("an edit keeps what the form does not show", () => {
  const before = { compare: { lo: [0, 0, 100], hi: [1, 1, 900] }, transform: [{ enlarge_m: 5 }], emit: "changes" };
  const plan = planOf(before, { stream: "s", report: "inside", where: "", box: { lo: [5, 5], hi: [6, 6] } });
  assert.deepEqual([plan.compare, plan.transform], [{ lo: [5, 5, 100], hi: [6, 6, 900] }, [{ enlarge_m: 5 }]]);
});

test("a cell of land has rings to fill and coasts that leave its edges and the antimeridian out", () => {
  const index = { cell: 15, overlap: 0.5, step: 0.5 };
  // A square from the western edge into the cell: the edge is no coast.
  const [square] = cellRings([[-1, 2, 5, 0, 0, 4, -5, 0, 0, -4]], index, [0, 45]);
  assert.deepEqual(square.ring, [
    [-0.5, 46],
    [2, 46],
    [2, 48],
    [-0.5, 48],
    [-0.5, 46],
  ]);
  assert.deepEqual(square.coast, [
    [
      [-0.5, 46],
      [2, 46],
      [2, 48],
      [-0.5, 48],
    ],
  ]);
  const [island] = cellRings([[2, 2, 2, 0, 0, 2, -2, -2]], index, [0, 45]);
  assert.deepEqual(island.coast, [island.ring]);
  const [cut] = cellRings([[26, 2, 4, 0, 0, 4, -4, 0, 0, -4]], index, [165, 45]);
  assert.deepEqual(cut.coast, [
    [
      [178, 46],
      [180, 46],
    ],
    [
      [180, 48],
      [178, 48],
      [178, 46],
    ],
  ]);
});
