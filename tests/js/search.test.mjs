// What the search of the bar finds, and the order of the rows of an object's card.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { placeIn } from "../../static/js/coordinates.js";
import { objectRows } from "../../static/js/objects/object-rows.js";
import { foundFeatures, foundObjects, townsNamed, townsOf, typedPlace } from "../../static/js/search-sources.js";
import { createStore } from "../../static/js/store/store.js";
import { hello, layer, NOW, row, SHIPS, snapshot } from "./helpers.mjs";

const GIBRALTAR = [
  "36.14, -5.35",
  "36.14 -5.35",
  "36,14; -5,35",
  "36,14 -5,35",
  "geo:36.14,-5.35;u=10",
  "36.14\u00b0 N, 5.35\u00b0 W",
  "36\u00b008'24\"N 5\u00b021'00\"W",
  "N36 08.4 W005 21.0",
  "5.35W 36.14N",
  "36:08:24N 5:21:00W",
  "36.14, \u22125.35",
];

for (const text of GIBRALTAR) {
  test(`coordinates are understood as people write them: ${text}`, () => {
    const { lon, lat } = placeIn(text);
    assert.deepEqual([lon.toFixed(4), lat.toFixed(4)], ["-5.3500", "36.1400"]);
  });
}

test("a name, a number by itself and a place that is none are no coordinates", () => {
  for (const text of ["MS Anna", "230145250", "99, 10", "36, 181", "60.17N", "10N 20N", "Nes", ""])
    assert.equal(placeIn(text), null, text);
  assert.deepEqual([typedPlace("36.14, -5.35")[0].name, typedPlace("anna")], ["36.1400\u00b0 N, 5.3500\u00b0 W", []]);
});

function opened(...rows) {
  const store = createStore();
  const view = { type: "view.status", views: { ships: 90 } };
  for (const message of [hello(SHIPS), view, snapshot(90, ...rows)]) store.apply(message, NOW);
  return store;
}

test("an object whose name or key is the text comes before those that only hold it", () => {
  const many = Array.from({ length: 20 }, (_, i) => row("+", `x${i}`, 1, 1, { properties: { name: `Savannah ${i}` } }));
  const store = opened(...many, row("+", "7", 1, 1, { properties: { name: "Anna" } }));
  const found = foundObjects(store, "ANNA");
  assert.deepEqual([found.length, found[0].name, found[0].about], [8, "Anna", "Ships \u00b7 7"]);
  assert.deepEqual(foundObjects(store, "name"), []);
});

test("features are found in all layers that are there, with where they are", async () => {
  const store = opened();
  store.apply(
    {
      type: "layers.listed",
      layers: [layer("parks"), layer("gone"), layer("failed", { version: null })].map((one) => one.layer),
    },
    NOW,
  );
  const asked = [];
  const api = {
    features: async (name, { find }) => {
      asked.push([name, find]);
      if (name === "gone") throw new Error("no such layer");
      const geometry = {
        type: "Polygon",
        coordinates: [
          [
            [1, 2],
            [3, 2],
            [3, 5],
            [1, 2],
          ],
        ],
      };
      return { features: [{ id: "p1", geometry, properties: { name: "Nuuksio" } }] };
    },
  };
  const [{ layer: of, key, name, about, box }] = await foundFeatures(store, api, "nuuk", undefined);
  assert.deepEqual([of, key, name, about, box], ["parks", "p1", "Nuuksio", "Layer parks", [1, 2, 3, 5]]);
  assert.deepEqual(asked, [
    ["parks", "nuuk"],
    ["gone", "nuuk"],
  ]);
  assert.deepEqual(await foundFeatures(store, api, "n", undefined), []);
});

test("towns are found by the beginning of a word, without accents, the largest first", () => {
  const towns = townsOf(JSON.parse(readFileSync(new URL("../../static/places.json", import.meta.url), "utf8")));
  const names = (text) => townsNamed(towns, text).map(({ name, about }) => `${name}, ${about}`);
  assert.equal(names("hamburg")[0], "Hamburg, Germany");
  assert.equal(names("zurich")[0].endsWith("Switzerland"), true);
  assert.deepEqual(names("gibral"), ["Gibraltar, Gibraltar"]);
  assert.deepEqual(names("zzzz"), []);
});

test("the card of an object begins with its type, speed and course, then where it is, and says nothing twice", () => {
  const known = { mmsi: 230145250, to_bow_m: 20, name: "MS ANNA ", destination: "HAMBURG", ship_type_code: 70 };
  const moves = { heading_deg: 12, course_deg: 10, altitude_m: 0, speed_mps: 5, ship_type: "cargo" };
  const rows = objectRows({ ...known, ...moves }, ["MS ANNA", "230145250"], [["Position", "here"]]);
  assert.deepEqual(
    rows.map(([name]) => name),
    ["Ship type", "Speed", "Course", "Heading", "Altitude", "Position", "Destination", "To bow", "Ship type code"],
  );
  const others = objectRows({ imo: 9, cog: 1, SOG: 2, type: "tug" }).map(([name]) => name);
  assert.deepEqual(others, ["Type", "SOG", "Cog", "IMO"]);
});
