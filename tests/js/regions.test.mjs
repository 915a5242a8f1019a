import assert from "node:assert/strict";
import { test } from "node:test";

import { sharesOf } from "../../static/js/map/regions.js";
import { createStore } from "../../static/js/store/store.js";
import { Subscriptions } from "../../static/js/store/subscriptions.js";
import { hello, NOW, SHIPS } from "./helpers.mjs";

test("regions are as strong as they are busy, and before that is known, as many elements as they get", () => {
  const region = (cores, rate) => ({ cores, elements_per_s: rate });
  assert.deepEqual(sharesOf([region(0.1, 5), region(0.4, 1)]), [0.25, 1]);
  assert.deepEqual(sharesOf([region(0, 5), region(0, 1)]), [1, 0.2]);
  assert.deepEqual(sharesOf([region(0, 0)]), [0]);
});

test("the page follows the regions while it shows them, also over a new connection", () => {
  const sent = [];
  const store = createStore();
  const socket = { open: true, send: (message) => message.type.startsWith("regions") && sent.push(message) };
  const subscriptions = new Subscriptions({
    store,
    socket,
    bounds: () => ({ west: 0, south: 0, east: 1, north: 1 }),
    shown: () => true,
    wanted: () => true,
  });
  const greet = () => {
    subscriptions.reset();
    store.apply(hello(SHIPS), NOW);
    subscriptions.follow(hello(SHIPS));
  };
  greet();
  assert.deepEqual(sent, []);
  subscriptions.regions(true);
  const asked = sent.splice(0);
  assert.ok(asked.length > 0 && asked.every(({ type }) => type === "regions.subscribe"));
  greet();
  assert.deepEqual(sent.splice(0), asked);
  store.apply({ type: "regions", space: "earth", number: 3, regions: [], changes: [] }, NOW);
  assert.equal(store.regions.get("earth").number, 3);
  subscriptions.regions(false);
  greet();
  assert.ok(sent.length > 0 && sent.every(({ type }) => type === "regions.unsubscribe"));
});
