import assert from "node:assert/strict";
import { test } from "node:test";

import { blit, over, pixelsOf } from "../../static/js/map/pixels.js";

const pixel = (r, g, b, a) => ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;
const RED = pixel(255, 0, 0, 255);
const HALF_BLUE = pixel(0, 0, 255, 128);

function image(width, height, ...pixels) {
  return pixelsOf({ width, height, data: new Uint8ClampedArray(Uint32Array.from(pixels).buffer) });
}

function frame(width, height) {
  return { width, height, pixels: new Uint32Array(width * height) };
}

test("only pixels that can be seen are kept", () => {
  assert.deepEqual([...image(2, 2, 0, RED, pixel(9, 9, 9, 0), HALF_BLUE).pixels], [RED, HALF_BLUE]);
});

test("what lies beyond the frame is left out, and never wraps to the other side", () => {
  for (const [left, top, expected] of [
    [-1, 0, [RED, 0, 0, 0]],
    [1, 0, [0, RED, 0, 0]],
    [0, -1, [0, 0, 0, 0]],
    [0, 2, [0, 0, 0, 0]],
  ]) {
    const out = frame(2, 2);
    blit(out, image(2, 1, RED, RED), left, top);
    assert.deepEqual([...out.pixels], expected);
  }
});

test("an opaque pixel hides the one below, a transparent one mixes with it", () => {
  const out = frame(2, 1);
  blit(out, image(2, 1, HALF_BLUE, RED), 0, 0);
  blit(out, image(2, 1, RED, HALF_BLUE), 0, 0);
  assert.equal(out.pixels[0], RED);
  assert.equal(out.pixels[1], pixel(127, 0, 128, 255));
});

test("two half transparent pixels are three quarters opaque", () => {
  const mixed = over(HALF_BLUE, HALF_BLUE);
  assert.deepEqual([mixed >>> 24, (mixed >>> 16) & 255, mixed & 255], [192, 255, 0]);
});
