import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { suggestions, vocabularyOf } from "../../static/js/queries/filter-words.js";
import { DECODED_KINDS, kindIn, kindOf, KINDS } from "../../static/js/objects/object-kinds.js";
import { columnsOf } from "../../static/js/store/frames.js";
import { Objects } from "../../static/js/objects/objects.js";
import { ColourBy } from "../../static/js/symbology/colour-by.js";
import { CLASSES } from "../../static/js/symbology/classes.js";
import { row } from "./helpers.mjs";

const SHIP = KINDS.indexOf("ship");

function told(properties, ofStream = SHIP) {
  return KINDS[kindIn(JSON.stringify(properties), ofStream)];
}

test("an object has the symbol of what it says it is, whatever its stream has", () => {
  for (const [kind, symbol] of [
    ["ship", "ship"],
    ["aircraft", "aircraft"],
    ["vehicle", "bus"],
    ["base station", "station"],
    ["aid to navigation", "aid"],
    ["auxiliary craft", "craft"],
    ["handheld radio", "radio"],
    ["search and rescue transmitter", "beacon"],
    ["man overboard", "beacon"],
    ["emergency beacon", "beacon"],
    ["Base_Station", "station"],
    ["AIS-SART", "beacon"],
  ])
    assert.equal(told({ name: "x", kind }), symbol, kind);
  assert.equal(told({ kind: "ship" }, KINDS.indexOf("aircraft")), "ship");
});

test("an object that does not say what it is, or says it in unknown words, has the symbol of its stream", () => {
  for (const properties of [{}, { kind: null }, { kind: 5 }, { kind: "forest" }, { of: { kind: "aircraft" } }])
    assert.equal(told(properties), "ship");
  assert.equal(KINDS[kindOf("buoy?")], "other");
});

test("a beacon under test is told apart from one that calls for help", () => {
  assert.equal(told({ kind: "man overboard", test: true }), "beacon-test");
  assert.equal(told({ kind: "man overboard", test: false }), "beacon");
  assert.equal(told({ kind: "man overboard", test: null }), "beacon");
  assert.equal(told({ kind: "ship", test: true }), "ship");
});

test("the symbol follows when the object says something else, and when its stream gets another icon", () => {
  const objects = new Objects();
  const slot = objects.ensure("ais", SHIP, "a");
  const update = (properties, n) =>
    objects.update(slot, columnsOf([row("+", "a", 1, 2, { properties, time_us: 1000 * n })]), 0);
  const drawn = () => KINDS[objects.kind[slot]];
  update({ kind: "man overboard" }, 1);
  assert.deepEqual([drawn(), objects.isUrgent(slot)], ["beacon", true]);
  update({ kind: "man overboard", test: true }, 2);
  assert.deepEqual([drawn(), objects.isUrgent(slot)], ["beacon-test", false]);
  objects.draw("ais", KINDS.indexOf("bus"));
  assert.equal(drawn(), "beacon-test");
  update({}, 3);
  assert.equal(drawn(), "bus");
});

test("each kind that the decoders tell is offered for a filter, those in view first", () => {
  const vocabulary = vocabularyOf(['{"kind": "man overboard"}', '{"kind": "ship"}', '{"kind": "ship"}']);
  const text = "kind = '";
  const { choices } = suggestions(text, text.length, vocabulary);
  assert.deepEqual(
    choices.slice(0, 2).map((choice) => [choice.text, choice.words]),
    [
      ["'ship'", "2 have it"],
      ["'man overboard'", "1 have it"],
    ],
  );
  assert.deepEqual(new Set(choices.map((choice) => choice.text)), new Set(DECODED_KINDS.map((kind) => `'${kind}'`)));
  const begun = "kind = 'aid";
  assert.deepEqual(
    suggestions(begun, begun.length, vocabularyOf([])).choices.map((choice) => [choice.text, choice.words]),
    [["'aid to navigation'", "none in view"]],
  );
});

test("the documents name each kind that has a symbol", () => {
  const page = readFileSync(new URL("../../docs/decoders.md", import.meta.url), "utf8").replaceAll(/\s+/g, " ");
  for (const kind of DECODED_KINDS) assert.ok(page.includes(`\`${kind}\``), kind);
});

test("each kind has a colour in the style sheet, a class for colouring by it, and a place in the legend", () => {
  const [base, map, template] = ["static/css/base.css", "static/css/map.css", "templates/map.html"].map((path) =>
    readFileSync(new URL(`../../${path}`, import.meta.url), "utf8"),
  );
  const colourBy = new ColourBy({ objects: new Objects(), streams: new Map() });
  colourBy.choose("kind");
  const rows = colourBy.legend().rows;
  assert.ok(rows.every(([number]) => number < CLASSES));
  for (const kind of KINDS) {
    assert.equal(base.split(`--${kind}:`).length, 4, kind); // light, dark, and dark by the system's choice
    if (kind !== "other") assert.ok(map.includes(`.kind-${kind} `), kind);
    assert.ok(template.includes(`class="kind kind-${kind}"`), kind);
  }
});
