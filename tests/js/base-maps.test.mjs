import assert from "node:assert/strict";
import test from "node:test";

import { firstOf, needsGround, optionsOf } from "../../static/js/map/base-maps.js";

const TOWN = { name: "Town", kind: "file", attribution: "<b>Town</b>", min_zoom: 9, max_zoom: 14, default: true };

test("an attribution is text, and zooms are those of the tiles", () => {
  const options = optionsOf(TOWN);
  assert.equal(options.attribution, "&#60;b&#62;Town&#60;/b&#62;");
  assert.deepEqual([options.minZoom, options.maxNativeZoom], [9, 14]);
  assert.equal(optionsOf({ ...TOWN, kind: "wms", layers: "a,b" }).layers, "a,b");
});

test("the built-in map shows below what may be empty somewhere", () => {
  assert.equal(needsGround(TOWN), true);
  assert.equal(needsGround({ kind: "xyz", min_zoom: 0 }), false);
  assert.equal(needsGround({ kind: "xyz", min_zoom: 3 }), true);
});

test("a page begins with the map that was chosen last, else the default, else the built-in one", () => {
  const names = ["Natural Earth", "Town", "Sea"];
  assert.equal(firstOf(names, [TOWN], "Sea"), 2);
  assert.equal(firstOf(names, [TOWN], "gone"), 1);
  assert.equal(firstOf(names, [TOWN], "Natural Earth"), 0);
  assert.equal(firstOf(names, [], null), 0);
});
