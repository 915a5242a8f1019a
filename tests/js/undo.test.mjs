// Steps are taken back in the order that is the other way round, and those of an editor that has ended are forgotten.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createUndo, forget, stepped } from "../../static/js/map/undo.js";

test("Ctrl+Z and the button take back one step after the other, of the shapes that are still edited", (t) => {
  const button = /** @type {any} */ (Object.assign(new EventTarget(), { hidden: true }));
  const page = /** @type {any} */ (globalThis);
  Object.assign(page, { document: { getElementById: () => button }, window: new EventTarget() });
  t.after(() => (delete page.document, delete page.window));
  createUndo();
  const back = [];
  const step = (owner, name) => stepped(owner, () => back.push(name));
  const press = (keys) => {
    const event = Object.assign(new Event("keydown", { cancelable: true }), { key: "z", ctrlKey: true }, keys);
    page.window.dispatchEvent(event);
    return event.defaultPrevented;
  };
  assert.equal(press({}), false);
  const [first, second] = [{}, {}];
  step(first, "a");
  step(second, "b");
  step(first, "c");
  step(second, "d");
  assert.equal(button.hidden, false);
  assert.equal(press({}), true);
  assert.equal(press({ shiftKey: true }), false);
  assert.equal(press({ ctrlKey: false }), false);
  button.dispatchEvent(new Event("click"));
  assert.deepEqual(back, ["d", "c"]);
  forget(second);
  assert.equal(press({ metaKey: true, ctrlKey: false, key: "Z" }), true);
  assert.deepEqual(back, ["d", "c", "a"]);
  assert.equal(button.hidden, true);
});
