import assert from "node:assert/strict";
import test from "node:test";

import { spriteSize } from "../../static/js/map/sprites.js";

test("symbols grow with the zoom, and are small where a lane is a few pixels long", () => {
  const sizes = Array.from({ length: 20 }, (_, zoom) => spriteSize(zoom));
  assert.deepEqual(
    sizes,
    [...sizes].sort((a, b) => a - b),
  );
  assert.ok(spriteSize(5) <= 10);
  assert.equal(spriteSize(12), 21);
});
