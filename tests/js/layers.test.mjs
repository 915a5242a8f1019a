import assert from "node:assert/strict";
import { test } from "node:test";

import { geometryTypes, layerName, layerTitle } from "../../static/js/format.js";
import { createStore, looksOf } from "../../static/js/store/store.js";
import { hello, layer, NOW, SHIPS } from "./helpers.mjs";

function opened(...messages) {
  const store = createStore();
  for (const message of [hello(SHIPS), ...messages]) store.apply(message, NOW);
  return store;
}

const listed = (...names) => ({ type: "layers.listed", layers: names.map((name) => layer(name).layer) });

test("a layer keeps its colour and whether it is shown when its status changes", () => {
  const store = opened(listed("roads", "ports"));
  store.showLayer("roads", true);
  const { colour } = store.layers.get("roads");
  store.apply(layer("roads", { version: 2, status: "importing", progress: 0.5 }), NOW);
  const roads = store.layers.get("roads");
  assert.deepEqual([roads.colour, roads.shown, roads.version, roads.progress], [colour, true, 2, 0.5]);
});

test("how layers were shown holds in the next visit, for those that are still there", () => {
  const before = opened(listed("roads", "ports", "parks"));
  before.showLayer("roads", true);
  before.colourByCount("roads", true);
  before.showLayer("ports", true);
  const store = createStore(JSON.parse(JSON.stringify(looksOf(before))));
  store.apply(hello(SHIPS), NOW);
  assert.deepEqual(looksOf(store), looksOf(before)); // nothing is forgotten before the list is there
  store.apply(listed("roads", "parks"), NOW);
  const shown = [...store.layers.values()].map((l) => [l.name, l.shown, l.byCount]);
  assert.deepEqual(shown, [
    ["roads", true, true],
    ["parks", false, false],
  ]);
  assert.deepEqual(looksOf(store), { roads: { shown: true, byCount: true } });
});

test("a layer that is made anew under the name of a dropped one is not shown by itself", () => {
  const store = opened(listed("roads"));
  store.showLayer("roads", true);
  for (const message of [layer("roads", { status: "deleted" }), layer("roads")]) store.apply(message, NOW);
  assert.equal(store.layers.get("roads").shown, false);
});

test("a dropped layer leaves the list", () => {
  const store = opened(listed("roads"), layer("roads", { status: "deleted" }));
  assert.equal(store.layers.size, 0);
});

test("a list that was asked for before a status is not newer than it", () => {
  const store = opened(layer("roads", { version: 3 }), layer("ports", { status: "deleted" }), listed("roads", "ports"));
  assert.deepEqual(
    [...store.layers.values()].map((l) => [l.name, l.version]),
    [["roads", 3]],
  );
});

test("layers that were dropped while the line was down are forgotten", () => {
  const store = opened(listed("roads", "ports"));
  for (const message of [hello(SHIPS), listed("ports")]) store.apply(message, NOW);
  assert.deepEqual([...store.layers.keys()], ["ports"]);
});

test("a file's name gives a layer's name and title", () => {
  assert.deepEqual(
    [layerName("City Parks.geojson.gz"), layerTitle("city_parks.geojson.gz")],
    ["city_parks", "City parks"],
  );
  assert.equal(layerName("2024-\u00c5land roads.shp.zip"), "aland_roads");
  assert.equal(layerName("\u6771\u4eac.kml"), "layer");
  assert.match(layerName(`${"x".repeat(80)}.gpkg`), /^x{40}$/);
});

test("features are called by their geometry", () => {
  assert.equal(geometryTypes(["Polygon", "MultiPolygon"], 3), "polygons");
  assert.equal(geometryTypes(["Point"], 1), "point");
  assert.equal(geometryTypes(["Point", "LineString"], 2), "features");
});
