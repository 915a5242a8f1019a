import assert from "node:assert/strict";
import { test } from "node:test";

import { documentsAfter } from "../../static/js/kinds/sketch/answers.js";
import { basisText, bounded, headline, membership, significant, titleOf } from "../../static/js/kinds/sketch/bounds.js";
import { chooseUnits } from "../../static/js/units.js";
import { change, row } from "./helpers.mjs";

test("a figure has its error, or both bounds if one is nearer than the other", () => {
  assert.equal(bounded("mean", "speed_mps", { value: 7.1, low: 6.8, high: 7.4 }), "7.1 m/s \u00b1 0.3 m/s");
  assert.equal(bounded("max", "speed_mps", { value: 20, low: 12, high: 20 }), "20 m/s (12 m/s to 20 m/s)");
  assert.equal(bounded("count", "", { value: 1234.4, low: 1200, high: 1268.8 }), "1,234 \u00b1 34");
  assert.equal(bounded("correlation", "a", { value: 0.512, low: 0.502, high: 0.522 }), "0.512 \u00b1 0.01");
});

test("a figure whose error is below its last digit stands alone", () => {
  assert.equal(bounded("min", "temp", { value: -16.8, low: -16.8, high: -16.8 }), "\u221216.8".replace("\u2212", "-"));
  assert.equal(bounded("mean", "speed_mps", { value: 7.1, low: 7.0999, high: 7.1001 }), "7.1 m/s");
  assert.equal(bounded("mean", "temp", { value: null, low: null, high: null }), "\u2013");
});

test("numbers without a unit have three digits that count", () => {
  assert.equal(bounded("contrast", "pm25", { value: -1006.482, low: -1010.1, high: -1002.9 }), "-1,006.5 \u00b1 3.62");
  assert.equal(bounded("contrast", "pressure", { value: -0.174, low: -0.17401, high: -0.17399 }), "-0.174");
  assert.equal(bounded("mean", "rain", { value: 0.0921, low: 0.0921, high: 0.0921 }), "0.0921");
});

test("an error in degrees Fahrenheit has no offset", () => {
  chooseUnits("imperial");
  assert.equal(bounded("mean", "air_c", { value: 10, low: 9, high: 11 }), "50 \u00b0F \u00b1 1.8 \u00b0F");
  chooseUnits("metric");
});

test("the basis of an answer is told", () => {
  const basis = {
    elements: 420_768,
    leaves: 1204,
    cut: 3,
    first_us: Date.UTC(2013, 2, 1) * 1000,
    last_us: Date.UTC(2017, 1, 28) * 1000,
  };
  assert.equal(
    basisText(basis, 0.95),
    "420,768 elements in 1,204 leaves of the sketch, 3 of them estimated at an edge, 2013-03-01 to 2017-02-28, 95 % sure",
  );
  assert.equal(basisText({ elements: 0 }), "Nothing was sketched there.");
  assert.equal(basisText({ elements: 12, entries: 3 }), "12 elements");
});

test("a set says yes with the probability that it is wrong, or no", () => {
  assert.equal(membership({ present: true, false_positive: 0.01 }), "yes, wrong with a probability of 0.01");
  assert.equal(membership({ present: false, false_positive: 0.01 }), "no");
  assert.deepEqual(headline({ question: "contains", answers: [{ of: "key", present: true }] }), {
    text: "yes",
    title: "Contains of key",
  });
});

test("what an answer is about is told in words", () => {
  assert.equal(titleOf("mean", "speed_mps"), "Mean of speed");
  assert.equal(titleOf("count", null), "Elements");
  assert.equal(titleOf("correlation", ["temp", "wind"]), "Correlation of temp and wind");
});

test("small numbers keep three digits that count", () => {
  assert.deepEqual([0, 0.01234, 12.345, 12345.6, -0.5].map(significant), ["0", "0.0123", "12.3", "12,346", "-0.5"]);
});

test("a card shows the first value of an answer with its bound, or how large the answer is", () => {
  const mean = { question: "mean", answers: [{ of: "temp", value: 13.5, low: 13, high: 14 }] };
  assert.deepEqual(headline(mean), { text: "13.5 \u00b1 0.5", title: "Mean of temp" });
  const entry = (more, value) => ({ of: "temp", value, low: value, high: value, ...more });
  const whole = { question: "select", answers: [entry({ statistic: "count" }, 9), entry({ statistic: "mean" }, 13.5)] };
  assert.deepEqual(headline(whole), { text: "13.5", title: "Mean of temp" });
  const deciles = { question: "deciles", answers: [entry({ part: 0.1 }, 1), entry({ part: 0.5 }, 5)] };
  assert.deepEqual(headline(deciles), { text: "5", title: "Median of temp" });
  assert.equal(
    headline({ question: "histogram", features: ["temp"], answers: [entry({ lo: 0, hi: 1 }, 0.5)] }).text,
    "1 bins",
  );
  assert.equal(headline({ question: "cells", cells: { cell: [1, 2] } }).text, "2 cells");
  assert.equal(headline({ question: "series", from_us: [1] }).text, "1 steps");
});

test("each answer replaces the one to the same question", () => {
  const said = (sign, key, value) => row(sign, key, 0, 0, { properties: { value } });
  const first = documentsAfter([], change(1, said("+", "1 mean temp", 1), said("+", "2 max temp", 2)).rows);
  assert.deepEqual(documentsAfter(first, change(1, said("~", "2 max temp", 3)).rows), [{ value: 1 }, { value: 3 }]);
});
