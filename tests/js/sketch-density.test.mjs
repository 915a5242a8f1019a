import assert from "node:assert/strict";
import { test } from "node:test";

import { Density } from "../../static/js/kinds/sketch/density.js";
import { createStore } from "../../static/js/store/store.js";
import { hello, NOW } from "./helpers.mjs";

const HOUR_US = 3_600_000_000;
const SKETCH = { features: ["speed_mps"], cell_bits: 16, time_bin_us: HOUR_US };
const SHIPS = { name: "ships", title: "Ships", icon: "ship", enabled: true, sketch: SKETCH };
const WORLD = { west: -180, south: -80, east: 180, north: 80 };
const BASIS = { elements: 9, leaves: 2, cut: 0, first_us: 0, last_us: 3 * HOUR_US };
const CELLS = {
  cell: [1, 2],
  lo: [
    [0, 0],
    [2, 0],
  ],
  hi: [
    [2, 2],
    [4, 2],
  ],
  value: [1, 8],
  low: [1, 7],
  high: [1, 9],
  n: [1, 8],
};
const moved = () => new Promise((resolve) => setTimeout(resolve, 300)); // the page waits until the map rests

/** A density on a map, with an asker that keeps the questions, and a layer and a legend that keep what they show. */
function shown({ zoom = 3, chosen = {}, streams = [SHIPS] } = {}) {
  const store = createStore();
  const told = { cells: null, legend: {}, says: [], chosen: null, veils: 0, listeners: {} };
  const questions = [];
  const asker = {
    ask({ plan }, on) {
      const question = { plan, on, ended: false, end: () => (question.ended = true) };
      questions.push(question);
      return question;
    },
  };
  const map = { zoom, getZoom: () => map.zoom, on: (name, run) => (told.listeners[name] = run) };
  const createLegend = (on) => ({
    on,
    nameOf: (of) => of,
    update: (what) => Object.assign(told.legend, what),
    show: (what) => Object.assign(told.legend, what),
    slide: (what) => Object.assign(told.legend, what),
    say: (words) => told.says.push(words),
  });
  const layer = { show: (what) => (told.cells = what), hit: () => 1 };
  const density = new Density(map, {
    store,
    asker,
    layer,
    createLegend,
    isDark: () => false,
    view: () => WORLD,
    chosen,
    onChoose: (next) => (told.chosen = next),
    onVeil: () => told.veils++,
  });
  store.apply(hello(...streams), NOW);
  const answer = (question) =>
    question.on.answers([
      question.plan.ask[0].question === "cells"
        ? { cells: CELLS, level: 13, basis: BASIS, confidence: 0.95 }
        : { basis: BASIS },
    ]);
  const cells = () => questions.filter(({ plan }) => plan.ask[0].question === "cells");
  return { density, told, map, store, questions, answer, cells };
}

test("nothing is asked until a density is chosen, and the choice is told", () => {
  const { density, questions, told } = shown();
  assert.equal(questions.length, 0);
  density.choose({ stream: "ships" });
  assert.deepEqual(told.chosen, { stream: "ships", of: "count", contours: false });
  assert.deepEqual(
    questions.map(({ plan }) => plan.ask[0].question),
    ["count", "cells"],
  );
  assert.deepEqual(questions[1].plan.ask[0], { question: "cells", level: 13, statistic: "count" });
});

test("what was chosen before is shown as soon as its stream is known", () => {
  const { cells } = shown({ chosen: { stream: "ships", of: "mean:speed_mps" } });
  assert.deepEqual(cells()[0].plan.ask[0], {
    question: "cells",
    level: 13,
    statistic: "mean",
    features: ["speed_mps"],
  });
});

test("objects are hidden behind a density, faint where it fades, and as always where it is gone", () => {
  const { density, map, cells, answer } = shown({ chosen: { stream: "ships" } });
  assert.equal(density.veil("ships"), 0, "not before there are cells");
  answer(cells()[0]);
  const veils = [3, 5, 6].map((zoom) => {
    map.zoom = zoom;
    return density.veil("ships");
  });
  assert.deepEqual([veils, density.veil("buses")], [[2, 1, 0], 0]);
});

test("a map that has moved is asked about anew; the cells before stay until the new ones come", async () => {
  const { told, cells, answer } = shown({ chosen: { stream: "ships" } });
  answer(cells()[0]);
  told.listeners.moveend();
  await moved();
  assert.deepEqual(
    cells().map(({ ended }) => ended),
    [false, false],
  );
  told.listeners.moveend();
  await moved();
  assert.deepEqual(
    cells().map(({ ended }) => ended),
    [false, true, false],
    "an answer that nobody waits for is not asked for",
  );
  answer(cells()[2]);
  assert.deepEqual(
    cells().map(({ ended }) => ended),
    [true, true, false],
  );
});

test("the slider asks for a step of the times that the sketch has, whose cells hide the objects at every zoom", () => {
  const { density, map, told, questions, answer, cells } = shown({ chosen: { stream: "ships" } });
  answer(questions[0]);
  assert.deepEqual([told.legend.steps.length, told.legend.step, told.legend.at], [4, "hour", -1]);
  density.legend.on.onStep(2);
  assert.deepEqual(cells().at(-1).plan.time, {
    ranges: [{ from: "1970-01-01T02:00:00.000Z", to: "1970-01-01T03:00:00.000Z" }],
  });
  answer(cells().at(-1));
  map.zoom = 9;
  assert.equal(density.veil("ships"), 2);
  density.legend.on.onStep(-1);
  assert.equal(cells().at(-1).plan.time, undefined);
});

test("playing goes on with the next step once the one before is there", async () => {
  const { density, questions, answer, cells, told } = shown({ chosen: { stream: "ships" } });
  answer(questions[0]);
  density.legend.on.onPlay();
  const at = () => cells().at(-1).plan.time.ranges[0].from.slice(11, 13);
  assert.deepEqual([at(), told.legend.playing], ["00", true]);
  answer(cells().at(-1));
  await new Promise((resolve) => setTimeout(resolve, 700));
  assert.equal(at(), "01");
  density.legend.on.onPlay();
  assert.equal(told.legend.playing, false);
});

test("a cell tells its value, its bounds and how many elements it has", () => {
  const { density, cells, answer } = shown({ chosen: { stream: "ships" } });
  answer(cells()[0]);
  assert.deepEqual(density.hit({}), {
    title: "Ships",
    about: "a cell of 13 bits, all times",
    rows: [
      ["count", "8"],
      ["Between", "7 and 9"],
      ["Elements", "8"],
    ],
  });
});

test("a density ends with its questions when it is switched off, and when its stream is no longer sketched", () => {
  const { density, told, questions, answer, cells, store } = shown({ chosen: { stream: "ships" } });
  answer(cells()[0]);
  store.apply({ type: "stream.list", streams: [{ ...SHIPS, sketch: null }] }, NOW);
  assert.ok(questions.every(({ ended }) => ended));
  assert.deepEqual([told.cells, density.veil("ships")], [null, 0]);
  store.apply({ type: "stream.list", streams: [SHIPS] }, NOW);
  assert.equal(cells().length, 2);
  density.choose({ stream: null });
  assert.ok(questions.every(({ ended }) => ended));
});

test("what the engine refuses is told in the legend", () => {
  const { told, cells } = shown({ chosen: { stream: "ships" } });
  cells()[0].on.error("an answer has at most 20,000 cells");
  assert.equal(told.says.at(-1), "an answer has at most 20,000 cells");
});
