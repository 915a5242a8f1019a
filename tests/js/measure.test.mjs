// Lengths, bearings and areas on the ellipsoid. geodesics.json is what PROJ says (pyproj.Geod).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { direct, inverse, path } from "../../static/js/measure/geodesic.js";
import { bearingText, drawnPath, measuredText, Measurement } from "../../static/js/measure/measurement.js";

const known = JSON.parse(readFileSync(new URL("geodesics.json", import.meta.url), "utf8"));

test("a geodesic is as long, and begins in the direction, that PROJ says", () => {
  for (const { from, to, lengthM, bearingDeg } of known.edges) {
    const found = inverse(from, to);
    assert.ok(Math.abs(found.lengthM - lengthM) < 1e-3, `${from} to ${to}: ${found.lengthM}, not ${lengthM}`);
    assert.ok(
      Math.abs(((found.bearingDeg - bearingDeg + 540) % 360) - 180) < 1e-4,
      `${from} to ${to}: ${found.bearingDeg}, not ${bearingDeg}`,
    );
    const [lon, lat] = direct(from, bearingDeg, lengthM);
    assert.ok(Math.abs(lat - to[1]) < 1e-7 && Math.abs(((lon - to[0] + 540) % 360) - 180) < 1e-6);
  }
  const opposite = inverse([0, 0], [179.9, 0.1]).lengthM;
  assert.ok(Math.abs(opposite - 20_003_000) < 100_000);
  assert.equal(inverse([3, 4], [3, 4]).lengthM, 0);
});

test("a ring covers what PROJ says, across the antimeridian and around a pole too", () => {
  for (const { ring, squareM } of known.areas) {
    const made = new Measurement();
    for (const place of ring) made.add(place);
    assert.ok(made.close());
    assert.ok(Math.abs(made.area() / squareM - 1) < 2e-4, `${ring}: ${made.area()}, not ${squareM}`);
  }
});

test("places are added once, taken back one by one, and closed from three on", () => {
  const made = new Measurement();
  made.add([24, 60]);
  made.add([24, 60]); // the second click of a double click
  assert.equal(made.close(), false);
  made.add([25, 60]);
  made.add([25, 61]);
  assert.equal(made.edges([26, 61]).length, 3);
  assert.equal(made.edges().length, 2);
  assert.equal(made.area(), null);
  assert.ok(made.close());
  assert.equal(made.edges([26, 61]).length, 3); // the pointer has no edge to a closed ring
  made.undo();
  assert.equal(made.closed, false);
  made.undo();
  assert.equal(made.places.length, 2);
});

test("what was measured is told in the chosen units", () => {
  const made = new Measurement();
  assert.equal(measuredText(made.edges(), made.area()), "");
  for (const place of [
    [24, 60],
    [24, 60.1],
    [24.2, 60.1],
  ])
    made.add(place);
  assert.equal(measuredText(made.edges().slice(0, 1), null), "11.1 km \u00b7 bearing 000.0\u00b0");
  assert.equal(measuredText(made.edges(), null), "2 parts, 22.3 km \u00b7 bearing 089.9\u00b0");
  made.close();
  assert.match(measuredText(made.edges(), made.area()), /^3 parts, 38 km \u00b7 area 62\u00a0km\u00b2$/);
  assert.equal(bearingText(359.97), "000.0\u00b0");
});

test("a long edge is drawn along the geodesic, and goes the short way round the world", () => {
  const { length } = drawnPath({ from: [-74, 40.7], to: [-0.1, 51.5], lengthM: 5.5e6 });
  assert.equal(length, 65);
  const lons = path([179, 10], [-179, 10], 8).map(([lon]) => lon);
  assert.ok(lons.every((lon, i) => i === 0 || Math.abs(lon - lons[i - 1]) < 1));
  assert.ok(path([-74, 40.7], [-0.1, 51.5], 2)[1][1] > 51.5);
});
