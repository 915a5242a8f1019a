import assert from "node:assert/strict";
import { test } from "node:test";

import { createStore, heldAlike } from "../../static/js/store/store.js";
import { change, hello, NOW, row, SHIPS, snapshot, status } from "./helpers.mjs";

function opened(...messages) {
  const store = createStore();
  for (const message of [hello(SHIPS), status(7, { space: "earth" }), status(8, { space: "earth" }), ...messages])
    store.apply(message, NOW);
  return store;
}

const at = (message, batch, epoch = "e") => ({ ...message, epoch, batch });
const held = (batch, without = [], more = {}) => ({
  type: "answer.held",
  space: "earth",
  epoch: "e",
  batch,
  without,
  ...more,
});

test("an answer is held up to its last message, or as the server says", () => {
  const store = opened(at(snapshot(7), 4), at(change(7, row("+", "a", 1, 1)), 6));
  assert.deepEqual(store.heldOf(7), { epoch: "e", batch: 6 });
  store.apply(held(9), NOW);
  store.apply(held(8), NOW);
  assert.deepEqual(store.heldOf(7), { epoch: "e", batch: 9 });
  store.apply(held(12, [7]), NOW);
  store.apply(held(12, [], { space: "prices" }), NOW);
  assert.deepEqual(store.heldOf(7), { epoch: "e", batch: 9 });
});

test("an answer that has not come is not held", () => {
  const store = opened(held(9));
  assert.equal(store.heldOf(7), null);
});

test("on a new connection nothing is held further until the answer goes on there", () => {
  const store = opened(at(snapshot(7), 4), hello(SHIPS), held(9));
  assert.deepEqual(store.heldOf(7), { epoch: "e", batch: 4 });
  store.apply({ type: "answer.resumed", query: 7, epoch: "e", batch: 4 }, NOW);
  store.apply(held(9), NOW);
  assert.deepEqual(store.heldOf(7), { epoch: "e", batch: 9 });
});

test("a snapshot is the newest word, of whatever epoch", () => {
  const store = opened(at(snapshot(7), 40), at(snapshot(7), 2, "f"));
  assert.deepEqual(store.heldOf(7), { epoch: "f", batch: 2 });
});

test("a cancelled query holds nothing", () => {
  const store = opened(at(snapshot(7), 4), status(7, { status: "cancelled" }));
  assert.equal(store.heldOf(7), null);
});

test("queries that are held alike are subscribed together", () => {
  const store = opened(status(9, { space: "earth" }), at(snapshot(7), 4), at(snapshot(8), 4), at(snapshot(9), 5));
  assert.deepEqual(heldAlike(store, [7, 8, 9, 10]), [
    [{ epoch: "e", batch: 4 }, [7, 8]],
    [{ epoch: "e", batch: 5 }, [9]],
    [null, [10]],
  ]);
});
