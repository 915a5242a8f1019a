import assert from "node:assert/strict";
import { test } from "node:test";

import { colourAt, css, gradient } from "../../static/js/kinds/sketch/colours.js";

/** Lightness L* of CIE 1976, from sRGB. */
function lightness(rgb) {
  const [r, g, b] = rgb
    .map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return luminance > 0.008856 ? 116 * Math.cbrt(luminance) - 16 : 903.3 * luminance;
}

test("equal steps of a value are about equal steps of lightness, so the colours can be read without hues", () => {
  for (const dark of [true, false]) {
    const steps = Array.from({ length: 11 }, (_, i) => lightness(colourAt(i / 10, dark)));
    const changes = steps.slice(1).map((next, i) => (dark ? next - steps[i] : steps[i] - next));
    for (const change of changes) assert.ok(change > 4 && change < 11, `${change}`);
  }
});

test("what is low looks like the ground of the theme", () => {
  assert.ok(lightness(colourAt(0, true)) < 20);
  assert.ok(lightness(colourAt(0, false)) > 80);
});

test("shares beyond the ends have the colour of the end", () => {
  assert.deepEqual(colourAt(-1, true), colourAt(0, true));
  assert.deepEqual(colourAt(7, true), [253, 231, 37]);
});

test("colours are written as CSS has them", () => {
  assert.equal(css([1, 2, 3], 0.5), "rgb(1 2 3 / 0.5)");
  assert.ok(gradient(true).startsWith("linear-gradient(to right, rgb(68 1 84 / 1), "));
});
