// Classes of values and their colours.

import assert from "node:assert/strict";
import test from "node:test";

import {
  bordersOf,
  categoriesOf,
  MOST_CATEGORIES,
  OTHER,
  rangeOf,
  UNKNOWN,
} from "../../static/js/symbology/classes.js";
import { ColourBy, choicesOf } from "../../static/js/symbology/colour-by.js";
import { coloursOf, edgeOf } from "../../static/js/symbology/colours.js";
import { writtenIn } from "../../static/js/symbology/units.js";
import { createStore } from "../../static/js/store/store.js";
import { chooseUnits } from "../../static/js/units.js";
import { NOW, SHIPS, hello, row, snapshot } from "./helpers.mjs";

const close = (a, b) =>
  assert.ok(a.length === b.length && a.every((value, i) => Math.abs(value - b[i]) < 1e-9), `${a} is not ${b}`);

test("borders are round, in the unit in which they are written", () => {
  const speeds = Float64Array.from({ length: 1000 }, (_, i) => i / 50); // 0 to 20 m/s
  close(bordersOf(speeds), [5, 10, 15]);
  const knot = 1852 / 3600;
  close(
    bordersOf(speeds, { unit: [knot, 0] }).map((value) => value / knot),
    [10, 20, 30],
  );
  close(bordersOf([3, 3, 3]), []);
  close(bordersOf([]), []);
  close(bordersOf(Float64Array.from({ length: 1000 }, (_, i) => (i === 999 ? 1e6 : i / 100))), [2, 4, 6, 8]); // one outlier changes nothing
});

test("ranges with as many numbers each have borders at the quantiles", () => {
  const skewed = Float64Array.from({ length: 700 }, (_, i) => (i / 70) ** 3);
  const borders = bordersOf(skewed, { equal: true });
  const counts = new Array(borders.length + 1).fill(0);
  for (const value of skewed) counts[rangeOf(borders, value)]++;
  assert.equal(counts.length, 7);
  assert.ok(
    counts.every((count) => Math.abs(count - 100) < 60),
    `${counts}`,
  );
});

test("a number is in the range that its borders say, and what is unknown in a class of its own", () => {
  assert.deepEqual(
    [-1, 5, 9.9, 10, 99].map((value) => rangeOf([5, 10], value)),
    [0, 1, 1, 2, 2],
  );
  assert.equal(rangeOf([5], NaN), UNKNOWN);
  const counts = new Map(Array.from({ length: 12 }, (_, i) => [`kind ${i}`, i]));
  const categories = categoriesOf(counts);
  assert.equal(categories.size, MOST_CATEGORIES);
  assert.equal(categories.get("kind 11"), 0);
  assert.equal(categories.has("kind 3"), false);
});

function opened(...rows) {
  const store = createStore();
  for (const message of [hello(SHIPS), { type: "view.status", views: { ships: 90 } }, snapshot(90, ...rows)])
    store.apply(message, NOW);
  return store;
}

const ship = (key, properties, more = {}) => row("+", key, 1, 1, { properties, ...more });
const classes = (store, colourBy, keys) => {
  colourBy.begin(NOW);
  return keys.map((key) => colourBy.classOf(store.objects.slot("ships", key)));
};

test("objects are coloured by speed, and by the time since their last report", () => {
  const rows = Array.from({ length: 21 }, (_, i) => ship(`s${i}`, { speed_mps: i }));
  const store = opened(...rows, ship("silent", {}), ship("old", { speed_mps: 3 }, { time_us: (NOW - 45_000) * 1000 }));
  const colourBy = new ColourBy(store);
  colourBy.choose("speed");
  assert.deepEqual(classes(store, colourBy, ["s0", "s5", "s20", "silent"]), [0, 1, 4, UNKNOWN]);
  assert.deepEqual(
    colourBy.legend().rows.map(([, text]) => text),
    ["below 5", "5 to 10", "10 to 15", "15 to 20", "20 and more", "unknown"],
  );
  assert.equal(colourBy.legend().unit, "m/s");
  colourBy.choose("age");
  assert.deepEqual(classes(store, colourBy, ["s0", "old"]), [0, 2]);
  chooseUnits("nautical");
  colourBy.choose("speed");
  assert.equal(colourBy.legend().unit, "kn");
  assert.equal(colourBy.legend().rows[0][1], "below 10");
  chooseUnits("metric");
});

test("objects are coloured by a text, by the most frequent ones, and the class follows the properties", () => {
  const kinds = Array.from({ length: 100 }, (_, i) =>
    ship(`s${i}`, { type: `t${Math.floor(Math.sqrt(i))}`, draught_m: i }),
  );
  const store = opened(...kinds, ship("none", {}));
  const colourBy = new ColourBy(store);
  assert.deepEqual(
    choicesOf(store.objects)[1][1].map(([value]) => value),
    ["property:draught_m", "property:type"].sort(),
  );
  colourBy.choose("property:type");
  assert.deepEqual(classes(store, colourBy, ["s99", "s64", "s4", "s0", "none"]), [0, 1, 7, OTHER, UNKNOWN]);
  assert.equal(colourBy.ranges, null);
  store.apply({ ...snapshot(90, ship("s0", { type: "t8" })), type: "answer.change" }, NOW);
  assert.deepEqual(classes(store, colourBy, ["s0"]), [1]);
  colourBy.choose("property:draught_m");
  assert.deepEqual(classes(store, colourBy, ["s1", "s99", "none"]), [0, colourBy.ranges - 1, UNKNOWN]);
});

test("a trail keeps the class of each of its places", () => {
  const store = opened(ship("a", { speed_mps: 1 }));
  const colourBy = new ColourBy(store);
  const move = (lon, minutes, properties) =>
    store.apply(
      {
        ...snapshot(90, row("~", "a", lon, 1, { time_us: (NOW + 60_000 * minutes) * 1000, properties })),
        type: "answer.change",
      },
      NOW,
    );
  for (let i = 1; i < 21; i++) move(1 + i / 10, i, { speed_mps: i });
  colourBy.choose("speed");
  colourBy.borders = [5, 10];
  const slot = store.objects.slot("ships", "a");
  const at = () => {
    const { n, value, timeMs } = store.objects.trails.read(slot, 0, colourBy.kept);
    return Array.from({ length: n }, (_, i) => colourBy.classAt(slot, value[i], timeMs[i]));
  };
  assert.deepEqual([at()[0], at()[6], at().at(-1)], [0, 1, 2]);
  colourBy.choose("property:type");
  assert.equal(at()[0], UNKNOWN);
  move(9, 30, { type: "x" });
  colourBy.fit();
  move(9.1, 31, { type: "x" });
  assert.equal(at().at(-1), 0);
});

test("units of the legend follow the name of a property", () => {
  assert.deepEqual(writtenIn("altitude_m"), { symbol: "m", unit: [1, 0] });
  assert.equal(writtenIn("length_m", 200).symbol, "m");
  assert.equal(writtenIn("distance_m", 50_000).symbol, "km");
  assert.deepEqual(writtenIn("bananas"), { symbol: "", unit: [1, 0] });
  chooseUnits("nautical");
  assert.equal(writtenIn("altitude_m").symbol, "ft");
  close(writtenIn("speed_kmh").unit, [1.852, 0]);
  chooseUnits("metric");
});

// Colours as eyes see them. Matrices of G. M. Machado et al., "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009,
// at full severity, over linear RGB.
const EYES = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
};
const linear = (colour) =>
  colour.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
const seen = (colour, eyes) =>
  EYES[eyes]
    .map((line) => line.reduce((sum, weight, i) => sum + weight * linear(colour)[i], 0).valueOf())
    .map((value) => Math.min(1, Math.max(0, value)));
const luminance = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;

function lab(colour, eyes) {
  const [r, g, b] = seen(colour, eyes);
  const xyz = [0.4124 * r + 0.3576 * g + 0.1805 * b, luminance([r, g, b]), 0.0193 * r + 0.1192 * g + 0.9505 * b].map(
    (value, i) => value / [0.9505, 1, 1.089][i],
  );
  const [x, y, z] = xyz.map((t) => (t > 216 / 24389 ? Math.cbrt(t) : ((24389 / 27) * t + 16) / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const apart = (a, b, eyes) => Math.hypot(...lab(a, eyes).map((value, i) => value - lab(b, eyes)[i]));

test("neighbouring ranges and all categories differ, also for eyes that do not tell red from green", () => {
  for (const dark of [false, true]) {
    for (const eyes of Object.keys(EYES)) {
      for (const count of [2, 5, 7]) {
        const colours = coloursOf(count, dark).slice(0, count);
        for (let i = 1; i < count; i++)
          assert.ok(apart(colours[i - 1], colours[i], eyes) > 8, `${count} ranges, ${i}, ${eyes}`);
      }
      const categories = coloursOf(null, dark);
      for (let i = 0; i < categories.length; i++) {
        for (let j = 0; j < i; j++)
          assert.ok(
            apart(categories[i], categories[j], eyes) > 8,
            `${i} and ${j}, ${eyes}, ${dark ? "dark" : "light"}: ${apart(categories[i], categories[j], eyes)}`,
          );
      }
    }
  }
});

test("the outline of every symbol stands out against land and sea", () => {
  const contrast = (a, b) => {
    const [low, high] = [luminance(linear(a)), luminance(linear(b))].sort((p, q) => p - q);
    return (high + 0.05) / (low + 0.05);
  };
  const maps = {
    false: [
      [211, 226, 236],
      [243, 242, 236],
    ],
    true: [
      [15, 26, 35],
      [29, 42, 51],
    ],
  }; // sea and land of base.css
  for (const dark of [false, true]) for (const ground of maps[dark]) assert.ok(contrast(edgeOf(dark), ground) >= 3);
});
