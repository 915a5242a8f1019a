// The cells of a density: how fine to ask for them, how strongly to draw them, which colour each one has. Pure.

import { extentOf, roundSteps } from "./scales.js";

const WORLD_PX = 256;
const SMALLEST_PX = 8;
const MOST_CELLS = 15_000; // the server refuses more than 20,000
// While the finest cells are smaller than this, the density stands for the objects; from twice twice that on, the objects do.
const DENSE_PX = 16;
const LOG_FROM = 20; // counts that differ by more than this are coloured by their logarithm
const OUTER = 0.01; // this share of the cells at either end has the colour of the end

/** Return the width in pixels of a cell of so many bits; the first bit halves the longitudes. */
export function cellPx(level, zoom) {
  return (WORLD_PX * 2 ** zoom) / 2 ** Math.ceil(level / 2);
}

/** Return how many bits to ask for: cells of at least 8 pixels, as fine as the sketch has them, not too many for the view. */
export function levelFor(zoom, { west, south, east, north }, finest) {
  const many = (level) =>
    ((Math.min(east - west, 360) / 360) * 2 ** Math.ceil(level / 2) + 1) *
    (((north - south) / 180) * 2 ** Math.floor(level / 2) + 1);
  let level = finest;
  while (level > 1 && (cellPx(level, zoom) < SMALLEST_PX || many(level) > MOST_CELLS)) level--;
  return level;
}

/** Return how strongly a density is drawn, from 0 to 1, and so how faintly the objects; `finest` is the level of the sketch. */
export function strengthAt(zoom, finest) {
  const doublings = Math.log2(cellPx(finest, zoom) / DENSE_PX);
  return Math.min(Math.max(1 - doublings / 2, 0), 1);
}

/**
 * Return the scale of a column of values: `share(value)` from 0 to 1, and `ticks`, `[[share, value], ...]`; null without a value.
 *
 * @param {number[]} values null where a cell has none
 * @param {boolean} counts whether they are counts or sums, whose orders of magnitude matter
 */
export function scaleOf(values, counts) {
  const known = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (known.length === 0) return null;
  const outer = Math.floor(known.length * OUTER);
  const [low, high] = [known[outer], known[known.length - 1 - outer]];
  const log = counts && low > 0 && high / low > LOG_FROM;
  const by = log ? Math.log10 : (value) => value;
  const [from, to] = [by(low), by(high)];
  const share = (value) => (to > from ? Math.min(Math.max((by(value) - from) / (to - from), 0), 1) : 0.5);
  const marks = log ? powers(low, high) : roundSteps(low, high, 4);
  const ticks = (marks.length > 1 ? marks : [...new Set([low, high])]).map((value) => [share(value), value]);
  return { share, ticks, low, high };
}

function powers(low, high) {
  const exponents = roundSteps(Math.ceil(Math.log10(low)), Math.floor(Math.log10(high)), 4);
  return exponents.filter(Number.isInteger).map((exponent) => 10 ** exponent);
}

/** Return the number of the cell at a place; -1 if none is there. Longitudes are taken modulo 360 degrees. */
export function cellAt({ lo, hi }, lonDeg, latDeg) {
  return lo.findIndex(([west, south], i) => {
    const [east, north] = hi[i];
    const lon = lonDeg + 360 * Math.round(((west + east) / 2 - lonDeg) / 360);
    return lon >= west && lon < east && latDeg >= south && latDeg < north;
  });
}

/**
 * Return cells of one size as a grid: `{columns, rows, values, lon, lat}`, row by row from the south. NaN where no cell is;
 * `lon` and `lat` are the middles of the columns and rows. Cells all around the world get their first column once more.
 */
export function gridOf({ lo, hi, value }) {
  const [width, height] = [hi[0][0] - lo[0][0], hi[0][1] - lo[0][1]];
  const [west, east] = extentOf(lo.map(([lon]) => lon));
  const [south, north] = extentOf(lo.map(([, lat]) => lat));
  const around = Math.round(360 / width);
  const own = Math.round((east - west) / width) + 1;
  const columns = own === around ? own + 1 : own;
  const rows = Math.round((north - south) / height) + 1;
  const values = new Float64Array(columns * rows).fill(NaN);
  lo.forEach(([lon, lat], i) => {
    const [column, row] = [Math.round((lon - west) / width), Math.round((lat - south) / height)];
    values[row * columns + column] = value[i] ?? NaN;
    if (column === 0 && columns > own) values[row * columns + own] = value[i] ?? NaN;
  });
  const middles = (start, size, many) => Array.from({ length: many }, (_, i) => start + (i + 0.5) * size);
  return { columns, rows, values, lon: middles(west, width, columns), lat: middles(south, height, rows) };
}
