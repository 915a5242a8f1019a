import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { namesIn } from "../../static/js/map/place-names.js";

const load = (name) => JSON.parse(readFileSync(new URL(`../../static/${name}.json`, import.meta.url), "utf8"));
const LISTS = { seas: load("seas"), towns: load("places") };
const [WIDTH, HEIGHT] = [1200, 800];

/** Return the names in a view whose middle is a place, as a flat map: close to what the page does. */
function seen(zoom, [lon, lat], more = {}) {
  const perDeg = (256 * 2 ** zoom) / 360;
  const up = perDeg / Math.cos((lat * Math.PI) / 180);
  const bounds = [lon - WIDTH / 2 / perDeg, lat - HEIGHT / 2 / up, lon + WIDTH / 2 / perDeg, lat + HEIGHT / 2 / up];
  const at = (x, y) => [
    WIDTH / 2 + (x - lon - 360 * Math.round((x - lon) / 360)) * perDeg,
    HEIGHT / 2 - (y - lat) * up,
  ];
  const measure = (text) => 7 * text.length;
  return namesIn(LISTS, { zoom, width: WIDTH, height: HEIGHT, bounds, at, german: false, measure, ...more });
}

const namesOf = (found) => found.map(({ name }) => name);

test("seas and towns have names, the more of them the larger the map is", () => {
  const north = namesOf(seen(5, [8, 56]));
  for (const name of ["North Sea", "English Channel", "London", "Copenhagen"]) assert.ok(north.includes(name), name);
  assert.ok(!north.includes("Gibraltar"));
  const strait = namesOf(seen(10, [-5.4, 36.05]));
  for (const name of ["Strait of Gibraltar", "Algeciras", "Tarifa"]) assert.ok(strait.includes(name), name);
  assert.ok(namesOf(seen(12, [-5.36, 36.13])).includes("Gibraltar"));
  assert.ok(seen(3, [0, 20]).length < seen(6, [8, 50]).length);
});

test("no name lies over another one, and all of them are within the view", () => {
  for (const [zoom, middle] of [
    [3, [0, 20]],
    [7, [6, 52]],
    [9, [139.7, 35.6]],
    [5, [179.9, 0]],
  ]) {
    const boxes = seen(zoom, middle).map(({ name, x, y, sea }) => {
      const wide = 7 * name.length;
      return sea ? [x - wide / 2, y - 7, x + wide / 2, y + 7] : [x - 2, y - 7, x + 6 + wide, y + 7];
    });
    for (const [i, [left, top, right, bottom]] of boxes.entries()) {
      assert.ok(left >= 0 && top >= 0 && right <= WIDTH && bottom <= HEIGHT);
      for (const other of boxes.slice(i + 1))
        assert.ok(left >= other[2] || other[0] >= right || top >= other[3] || other[1] >= bottom);
    }
  }
});

test("names of seas are in German for those who read German, and across the antimeridian as well", () => {
  assert.ok(namesOf(seen(5, [19, 57], { german: true })).includes("Ostsee"));
  assert.ok(namesOf(seen(4, [179, 58])).includes("Bering Sea"));
});

test("each sea has two names and a place on the earth, and is named from a zoom that the map has", () => {
  for (const [english, german, lon, lat, zoom] of LISTS.seas) {
    assert.ok(english && german, english);
    assert.ok(Math.abs(lon) <= 180 && Math.abs(lat) < 85 && zoom >= 2 && zoom <= 12, english);
  }
});
