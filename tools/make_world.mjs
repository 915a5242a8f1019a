// Make static/land/world-*.json and borders.json of world-atlas: the whole world as far as it is seen, ready to be drawn.
//
//     npm install world-atlas topojson-client simplify-js
//     node tools/make_world.mjs node_modules
//
// Before the map takes the finer cells, it shows one file of the world at each zoom, and at first only one of them: small,
// and without work for the page. With the cells it draws the borders, at every zoom.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { projected, withoutSeam } from "../static/js/map/land.js";

const FOLDER = new URL("../static/land/", import.meta.url);
const WORLD_PX = 256;
const STEPS_PER_PX = 4;
const SIMPLIFY_PX = 0.5;
const LEAST_PX = 1; // an island that is smaller is left out
const WORLD_ZOOMS = [2, 3, 4]; // the first one also for smaller ones
const BORDER_ZOOM = 10;

/**
 * A ring whose longitudes jump across the antimeridian as two whole rings, one on each side of the world. Antarctica goes
 * round the pole, and closes along the map's lower edge as it is.
 */
export function unwrappedRings(ring) {
  let turn = 0;
  let jumps = false;
  const whole = ring.map(([lon, lat], i) => {
    const step = i > 0 ? lon - ring[i - 1][0] : 0;
    if (Math.abs(step) > 180) {
      turn -= 360 * Math.sign(step);
      jumps = true;
    }
    return [lon + turn, lat];
  });
  if (!jumps || turn !== 0 || ring.some(([, lat]) => lat < -60)) return [ring];
  const away = whole.some(([lon]) => lon > 180) ? -360 : 360;
  return [whole, whole.map(([lon, lat]) => [lon + away, lat])];
}

/** All rings of a GeoJSON polygon or multipolygon, or of a collection of them. */
function ringsOf(geometry) {
  if (geometry.type === "FeatureCollection") return geometry.features.flatMap((feature) => ringsOf(feature.geometry));
  if (geometry.type === "Feature") return ringsOf(geometry.geometry);
  if (geometry.type === "GeometryCollection") return geometry.geometries.flatMap(ringsOf);
  if (geometry.type === "Polygon") return geometry.coordinates;
  return geometry.type === "MultiPolygon" ? geometry.coordinates.flat() : [];
}

/** Lines as flat whole numbers: a place in steps, of which the world has so many on a side, then differences. */
function written(lines, zoom, simplify) {
  const side = WORLD_PX * 2 ** zoom;
  const steps = STEPS_PER_PX * side;
  const seen = lines.map(projected).filter(({ box }) => Math.max(box[2] - box[0], box[3] - box[1]) * side >= LEAST_PX);
  const shapes = seen.map(({ points }) => {
    const line = Array.from({ length: points.length / 2 }, (_, i) => ({ x: points[2 * i], y: points[2 * i + 1] }));
    const places = simplify(line, SIMPLIFY_PX / side, true).flatMap(({ x, y }) => [
      Math.round(x * steps),
      Math.round(y * steps),
    ]);
    return places.map((value, i) => (i < 2 ? value : value - places[i - 2]));
  });
  return { steps, lines: shapes };
}

function save(name, document) {
  writeFileSync(new URL(`${name}.json`, FOLDER), JSON.stringify(document));
}

function main([modules]) {
  const require = createRequire(`${resolve(modules)}/`);
  const [topojson, simplify] = [require("topojson-client"), require("simplify-js")];
  const topology = JSON.parse(readFileSync(require.resolve("world-atlas/countries-50m.json")));
  const { countries, land } = topology.objects;
  const rings = ringsOf(topojson.feature(topology, land)).flatMap(unwrappedRings);
  const coasts = withoutSeam(topojson.mesh(topology, land).coordinates);
  const borders = withoutSeam(topojson.mesh(topology, countries, (a, b) => a !== b).coordinates);
  for (const zoom of WORLD_ZOOMS) {
    const [lands, coast, border] = [rings, coasts, borders].map((lines) => written(lines, zoom, simplify));
    save(`world-${zoom}`, { land: lands, coasts: coast, borders: border });
  }
  save("borders", { borders: written(borders, BORDER_ZOOM, simplify) });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main(process.argv.slice(2));
