// Which names of seas and towns the map without internet shows, and where. Pure.

import { Room } from "./labels.js";

// How many of the largest towns are considered, by zoom: none below the first, all beyond the last.
const TOWNS = [0, 0, 0, 60, 200, 700, 2000, 5000, 12_000];
const LARGE = 300; // so many of the largest towns are written larger
const GAP_PX = 4;
const HEIGHT_PX = 14;
const DOT_PX = 6; // from a town's dot to its name

/**
 * Return the names that have room: `[{name, x, y, sea, large}]`, the place of the middle of a sea's name or of a town's dot; the
 * first ones have precedence.
 *
 * @param {Record<string, any>} lists `seas`, rows `[name, name in German, lon, lat, zoom]`; `towns`, rows `[name, country, lon, lat]`, the largest first
 * @param {Record<string, any>} view `zoom`; `width` and `height` in pixels; `bounds`, `[west, south, east, north]` in degrees;
 *   `at(lon, lat)`, the place `[x, y]` in the view; `german`; `measure(text, how)`, the width of a text in pixels
 */
export function namesIn({ seas, towns }, { zoom, width, height, bounds, at, german, measure }) {
  const [west, south, east, north] = bounds;
  const inside = (lon, lat) =>
    lat >= south && lat <= north && lon - west - 360 * Math.floor((lon - west) / 360) <= east - west;
  const room = new Room(width, height);
  const found = [];
  const put = (/** @type {any[]} */ [x, y], left, wide, name) => {
    const [top, bottom] = [y - HEIGHT_PX / 2, y + HEIGHT_PX / 2];
    const box = [x + left - GAP_PX, top - GAP_PX, x + left + wide + GAP_PX, bottom + GAP_PX];
    if (!room.free(...box)) return;
    room.add(...box);
    found.push({ ...name, x, y });
  };
  for (const [english, inGerman, lon, lat, from] of seas) {
    if (zoom < from || !inside(lon, lat)) continue;
    const name = { name: german ? inGerman : english, sea: true, large: from <= 4 };
    const wide = measure(name.name, name);
    put(at(lon, lat), -wide / 2, wide, name);
  }
  const most = TOWNS[zoom] ?? towns.length;
  for (let rank = 0; rank < Math.min(most, towns.length); rank++) {
    const [text, , lon, lat] = towns[rank];
    if (!inside(lon, lat)) continue;
    const name = { name: text, sea: false, large: rank < LARGE };
    put(at(lon, lat), -DOT_PX, DOT_PX + DOT_PX + measure(text, name), name);
  }
  return found;
}
