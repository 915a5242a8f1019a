// Make static/land/world.json of world-atlas: land, coasts and borders of the whole world, ready to be drawn.
//
//     npm install world-atlas topojson-client
//     node tools/make_world.mjs node_modules/world-atlas/countries-50m.json node_modules/topojson-client/dist/topojson-client.js
//
// Land and coasts are as fine as the map shows them before it takes the finer cells; borders are drawn at every zoom.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { projected, simplified, withoutSeam } from "../static/js/land.js";

const FILE = new URL("../static/land/world.json", import.meta.url);
const WORLD_PX = 256;
const STEPS_PER_PX = 4;
const SIMPLIFY_PX = 0.6; // as the map does it
const LAND_ZOOM = 4;
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
function written(lines, zoom) {
  const side = WORLD_PX * 2 ** zoom;
  const steps = STEPS_PER_PX * side;
  const shapes = simplified(lines.map(projected), SIMPLIFY_PX / side).map(({ points }) => {
    const places = Array.from(points, (value) => Math.round(value * steps));
    return places.map((value, i) => (i < 2 ? value : value - places[i - 2]));
  });
  return { steps, lines: shapes };
}

function main([atlas, client]) {
  const topojson = createRequire(import.meta.url)(resolve(client));
  const topology = JSON.parse(readFileSync(atlas));
  const { countries, land } = topology.objects;
  const document = {
    land: written(ringsOf(topojson.feature(topology, land)).flatMap(unwrappedRings), LAND_ZOOM),
    coasts: written(withoutSeam(topojson.mesh(topology, land).coordinates), LAND_ZOOM),
    borders: written(withoutSeam(topojson.mesh(topology, countries, (a, b) => a !== b).coordinates), BORDER_ZOOM),
  };
  writeFileSync(FILE, JSON.stringify(document));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main(process.argv.slice(2));
