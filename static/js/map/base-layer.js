// The base map that needs no internet: land, coast and borders drawn into tiles, so that panning costs nothing.

import { filled, gettext } from "../i18n.js";
import { cellRings, clippedLine, clippedRing, overlaps, projected, simplified, summed } from "./land.js";

const TILE_PX = 512;
const WORLD_PX = 256;
const MARGIN_PX = 4;
const SIMPLIFY_PX = 0.6;
const COARSEST_ZOOM = 2; // zoom of the first file of the world; there is one for each zoom
const DETAILED_FROM_ZOOM = 5; // from here on the map shows the finer data
const FINEST_ZOOM = 10; // beyond it, the finer data has no more detail
const COAST_FROM_ZOOM = 9; // from here on the map shows the finest coast, where the server has it
const FINEST_COAST_ZOOM = 14;

const SOURCES = [
  '<a href="https://www.naturalearthdata.com/">Natural Earth</a>',
  '<a href="https://www.geonames.org/">GeoNames</a>',
  '<a href="https://www.soest.hawaii.edu/pwessel/gshhg/">GSHHG</a>',
];

/**
 * Make the layer.
 *
 * @param {Record<string, any>} L Leaflet
 * @param {Record<string, any>} urls `world`, files of the whole world from `COARSEST_ZOOM` on; `borders`; `land`, the index of the finer cells;
 *   `coast`, that of the finest ones, empty where there are none
 * @param {(...values: any[]) => any} palette returning `{sea, land, coast, border, grid}`
 */
export function createBaseLayer(L, urls, palette) {
  const Layer = L.GridLayer.extend({
    createTile(coords, done) {
      const tile = document.createElement("canvas");
      const ratio = Math.min(window.devicePixelRatio || 1, 2);
      tile.width = tile.height = TILE_PX * ratio;
      shapesOf(urls, coords).then(
        (shapes) => {
          drawTile(tile, ratio, coords, shapes, palette());
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
    attribution: filled(gettext("Map: %(source)s"), { source: SOURCES.slice(0, urls.coast ? 3 : 2).join(", ") }),
  });
}

/** Return what to draw in a tile, `{lands, coasts, borders}`; each land is a list of rings that are filled together. */
async function shapesOf(urls, { x, y, z }) {
  if (z < DETAILED_FROM_ZOOM) return world(urls.world[Math.max(z - COARSEST_ZOOM, 0)]);
  const { borders } = (await bordersOf(urls.borders))(Math.min(z, FINEST_ZOOM));
  const fine = z >= COAST_FROM_ZOOM && urls.coast;
  const land = fine ? await landOf(urls.coast, { x, y, z }, FINEST_COAST_ZOOM) : null;
  const shapes = land ?? (await landOf(urls.land, { x, y, z }, FINEST_ZOOM)) ?? (await world(urls.world.at(-1)));
  return { ...shapes, borders };
}

/** Return the land of a tile, `{lands, coasts}`, of the cells of an index; null if they cannot be loaded. */
async function landOf(index, { x, y, z }, finest) {
  try {
    const cells = (await Promise.all(await cellsOf(index, x, y, z))).map((levels) => levels(Math.min(z, finest)));
    return { lands: cells.map(({ land }) => land), coasts: cells.flatMap(({ coast }) => coast) };
  } catch {
    return null; // coarser land rather than none
  }
}

const loaded = new Map(); // address -> promise of what `make` made of it
const MOST_LOADED = 500; // of the finest coast, there are more cells than a browser has room for

/** Load JSON once; after a failure, the next call loads it again. */
function once(url, make) {
  if (!loaded.has(url)) {
    const promise = fetch(url).then((response) => {
      if (!response.ok)
        throw new Error(filled(gettext("the base map could not be loaded: %(status)s"), { status: response.status }));
      return response.json();
    });
    loaded.set(url, promise.then(make));
    loaded.get(url).catch(() => loaded.delete(url));
    if (loaded.size > MOST_LOADED) loaded.delete(loaded.keys().next().value);
  }
  return loaded.get(url);
}

/** Return the whole world in the detail of one zoom: `{lands, coasts, borders}`. */
function world(url) {
  return once(url, ({ land, coasts, borders }) => ({
    lands: [summed(land)],
    coasts: summed(coasts),
    borders: summed(borders),
  }));
}

/** Return all borders, as a function of the zoom that returns `{borders}`. */
function bordersOf(url) {
  return once(url, ({ borders }) => byZoom({ borders: summed(borders) }));
}

/** Return promises of the cells of land in a tile; each cell is a function of the zoom that returns `{land, coast}`. */
async function cellsOf(url, x, y, z) {
  const index = await once(url, (document) => ({ ...document, names: document.cells && new Set(document.cells) }));
  const side = TILE_PX / (WORLD_PX * 2 ** z);
  const [west, east] = [x * side, (x + 1) * side].map((across) => 360 * across - 180);
  const [north, south] = [y * side, (y + 1) * side].map(latitudeAt);
  const from = (bound) => Math.floor(bound / index.cell) * index.cell;
  const found = [];
  for (let lon = from(west); lon < east; lon += index.cell)
    for (let lat = from(south); lat < north; lat += index.cell)
      if (index.names?.has(`${lon}_${lat}`) ?? lon < 180) found.push(cellOf(url, index, [lon, lat]));
  return found;
}

function cellOf(url, index, corner) {
  return once(new URL(`${corner.join("_")}.json`, new URL(url, location.href)).href, (rings) => {
    const shapes = cellRings(rings, index, corner);
    return byZoom({
      land: shapes.map(({ ring }) => projected(ring)),
      coast: shapes.flatMap(({ coast }) => coast).map(projected),
    });
  });
}

/** Return a function of the zoom that returns the shapes in the detail of that zoom. */
function byZoom(shapes) {
  const levels = new Map();
  return (zoom) => {
    if (!levels.has(zoom)) levels.set(zoom, simplifiedWorld(shapes, SIMPLIFY_PX / (WORLD_PX * 2 ** zoom)));
    return levels.get(zoom);
  };
}

function simplifiedWorld(shapes, tolerance) {
  return Object.fromEntries(Object.entries(shapes).map(([name, list]) => [name, simplified(list, tolerance)]));
}

function drawTile(tile, ratio, { x, y, z }, shapes, colours) {
  const sidePx = WORLD_PX * 2 ** z;
  const context = tile.getContext("2d");
  context.fillStyle = colours.sea;
  context.fillRect(0, 0, tile.width, tile.height);
  const margin = MARGIN_PX / sidePx;
  const [left, top, side] = [(x * TILE_PX) / sidePx, (y * TILE_PX) / sidePx, TILE_PX / sidePx];
  const clip = [left - margin, top - margin, left + side + margin, top + side + margin];
  const trace = (points) => {
    for (let i = 0; i < points.length; i += 2) {
      const [px, py] = [(points[i] - left) * sidePx, (points[i + 1] - top) * sidePx];
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
  graticule(context, colours.grid, { z, sidePx, left, top });
  context.fillStyle = colours.land;
  for (const land of shapes.lands) {
    context.beginPath();
    for (const ring of near(land)) {
      trace(clippedRing(ring, clip));
      context.closePath();
    }
    context.fill("evenodd");
  }
  stroke(shapes.borders, colours.border, z < 5 ? 0.7 : 1);
  stroke(shapes.coasts, colours.coast, z < 5 ? 0.7 : 1.1);
}

/** Draw meridians and parallels on the sea, at a round distance that suits the zoom. */
function graticule(context, style, { z, sidePx, left, top }) {
  const step = [30, 30, 30, 15, 10, 5, 2, 1, 0.5, 0.25][Math.min(z, 9)];
  context.beginPath();
  const from = Math.floor(((left - 0.5) * 360) / step) * step;
  for (let lon = from; lon <= (left + TILE_PX / sidePx - 0.5) * 360; lon += step) {
    const px = Math.round((lon / 360 + 0.5 - left) * sidePx) + 0.5;
    context.moveTo(px, 0);
    context.lineTo(px, TILE_PX);
  }
  for (const lat of parallels(step, top, TILE_PX / sidePx)) {
    const py = Math.round((lat - top) * sidePx) + 0.5;
    context.moveTo(0, py);
    context.lineTo(TILE_PX, py);
  }
  context.strokeStyle = style;
  context.lineWidth = 1;
  context.stroke();
}

function latitudeAt(y) {
  return (Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI;
}

function parallels(step, top, side) {
  const y = (lat) => 0.5 - Math.asinh(Math.tan((lat * Math.PI) / 180)) / (2 * Math.PI);
  const out = [];
  for (let lat = Math.ceil(latitudeAt(top + side) / step) * step; lat <= latitudeAt(top); lat += step) out.push(y(lat));
  return out;
}
