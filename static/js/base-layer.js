// The base map that needs no internet: land, coast and borders drawn into tiles, so that panning costs nothing.

import { clippedLine, clippedRing, overlaps, projected, ringsOf, simplified, unwrappedRings, withoutSeam } from "./land.js";

const TILE_PX = 512;
const WORLD_PX = 256;
const MARGIN_PX = 4;
const SIMPLIFY_PX = 0.6;
const DETAILED_FROM_ZOOM = 7; // the data is no finer than this

/**
 * Make the layer.
 *
 * @param {object} L Leaflet
 * @param {object} topojson topojson-client
 * @param {string} url of world-atlas' countries-50m.json
 * @param {function} palette returning `{sea, land, coast, border, grid}`
 */
export function createBaseLayer(L, topojson, url, palette) {
  const Layer = L.GridLayer.extend({
    createTile(coords, done) {
      const tile = document.createElement("canvas");
      const ratio = Math.min(window.devicePixelRatio || 1, 2);
      tile.width = tile.height = TILE_PX * ratio;
      world(topojson, url).then(
        (levels) => {
          drawTile(tile, ratio, coords, levels(coords.z), palette());
          done(null, tile);
        },
        (error) => done(error, tile),
      );
      return tile;
    },
  });
  return new Layer({
    tileSize: TILE_PX,
    zoomOffset: 0,
    keepBuffer: 2,
    updateWhenIdle: false,
    updateInterval: 100,
    attribution: 'Map: <a href="https://www.naturalearthdata.com/">Natural Earth</a>',
  });
}

let loaded = null;

/** The world by zoom, loaded once: a function of the zoom that returns `{land, coast, borders}`. */
function world(topojson, url) {
  loaded ??= fetch(url)
    .then((response) => {
      if (!response.ok) throw new Error(`the base map could not be loaded: ${response.status}`);
      return response.json();
    })
    .then((topology) => levelsOf(topojson, topology));
  return loaded;
}

function levelsOf(topojson, topology) {
  const { countries, land } = topology.objects;
  const shapes = {
    land: ringsOf(topojson.feature(topology, land)).flatMap(unwrappedRings).map(projected),
    coast: withoutSeam(topojson.mesh(topology, land).coordinates).map(projected),
    borders: withoutSeam(topojson.mesh(topology, countries, (a, b) => a !== b).coordinates).map(projected),
  };
  const levels = new Map();
  return (zoom) => {
    const level = Math.min(zoom, DETAILED_FROM_ZOOM);
    if (!levels.has(level)) levels.set(level, simplifiedWorld(shapes, SIMPLIFY_PX / (WORLD_PX * 2 ** level)));
    return levels.get(level);
  };
}

function simplifiedWorld(shapes, tolerance) {
  return Object.fromEntries(Object.entries(shapes).map(([name, list]) => [name, simplified(list, tolerance)]));
}

function drawTile(tile, ratio, { x, y, z }, shapes, colours) {
  const world = WORLD_PX * 2 ** z;
  const context = tile.getContext("2d");
  context.fillStyle = colours.sea;
  context.fillRect(0, 0, tile.width, tile.height);
  const margin = MARGIN_PX / world;
  const [left, top, side] = [(x * TILE_PX) / world, (y * TILE_PX) / world, TILE_PX / world];
  const clip = [left - margin, top - margin, left + side + margin, top + side + margin];
  const trace = (points) => {
    for (let i = 0; i < points.length; i += 2) {
      const [px, py] = [(points[i] - left) * world, (points[i + 1] - top) * world];
      if (i === 0) context.moveTo(px, py);
      else context.lineTo(px, py);
    }
  };
  const near = (list) => list.filter(({ box }) => overlaps(box, clip));
  const stroke = (list, style, width) => {
    context.beginPath();
    for (const line of near(list)) clippedLine(line, clip).forEach(trace);
    context.strokeStyle = style;
    context.lineWidth = width;
    context.stroke();
  };
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.lineJoin = "round";
  graticule(context, colours.grid, { z, world, left, top });
  context.beginPath();
  for (const ring of near(shapes.land)) {
    trace(clippedRing(ring, clip));
    context.closePath();
  }
  context.fillStyle = colours.land;
  context.fill("evenodd");
  stroke(shapes.borders, colours.border, z < 5 ? 0.7 : 1);
  stroke(shapes.coast, colours.coast, z < 5 ? 0.7 : 1.1);
}

/** Meridians and parallels on the sea, at a round distance that suits the zoom. */
function graticule(context, style, { z, world, left, top }) {
  const step = [30, 30, 30, 15, 10, 5, 2, 1, 0.5, 0.25][Math.min(z, 9)];
  context.beginPath();
  const from = Math.floor(((left - 0.5) * 360) / step) * step;
  for (let lon = from; lon <= (left + TILE_PX / world - 0.5) * 360; lon += step) {
    const px = Math.round((lon / 360 + 0.5 - left) * world) + 0.5;
    context.moveTo(px, 0);
    context.lineTo(px, TILE_PX);
  }
  for (const lat of parallels(step, top, TILE_PX / world)) {
    const py = Math.round((lat - top) * world) + 0.5;
    context.moveTo(0, py);
    context.lineTo(TILE_PX, py);
  }
  context.strokeStyle = style;
  context.lineWidth = 1;
  context.stroke();
}

function parallels(step, top, side) {
  const latitude = (y) => (Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI;
  const y = (lat) => 0.5 - Math.asinh(Math.tan((lat * Math.PI) / 180)) / (2 * Math.PI);
  const out = [];
  for (let lat = Math.ceil(latitude(top + side) / step) * step; lat <= latitude(top); lat += step) out.push(y(lat));
  return out;
}
