import assert from "node:assert/strict";
import { test } from "node:test";

import { coalesced, repeated } from "../../static/js/dom.js";

/** Replace the page by one where something is pressed or not, and let time pass by hand. */
function page(t) {
  const state = { pressed: false };
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  globalThis.document = /** @type {any} */ ({ querySelector: () => (state.pressed ? {} : null) });
  t.after(() => delete globalThis.document);
  return state;
}

test("nothing is drawn anew while a button is pressed, and everything once it is let go", (t) => {
  const state = page(t);
  let drawn = 0;
  const draw = coalesced(() => drawn++, 0);
  state.pressed = true;
  draw();
  t.mock.timers.tick(1000);
  draw();
  assert.equal(drawn, 0);
  state.pressed = false;
  t.mock.timers.tick(50);
  assert.equal(drawn, 1);
  draw();
  t.mock.timers.tick(0);
  assert.equal(drawn, 2);
});

test("a press that never ends does not stop the page", (t) => {
  const state = page(t);
  let drawn = 0;
  state.pressed = true;
  coalesced(() => drawn++, 0)();
  for (let ms = 0; ms <= 2000; ms += 50) t.mock.timers.tick(50);
  assert.equal(drawn, 1);
});

test("what is drawn by the clock waits for the end of a press, too", (t) => {
  const state = page(t);
  let drawn = 0;
  repeated(() => drawn++, 1000);
  state.pressed = true;
  t.mock.timers.tick(1500);
  assert.equal(drawn, 0);
  state.pressed = false;
  t.mock.timers.tick(50);
  assert.equal(drawn, 1);
  t.mock.timers.tick(950);
  assert.equal(drawn, 2);
});
