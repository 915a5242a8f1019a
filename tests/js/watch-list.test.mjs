import assert from "node:assert/strict";
import { test } from "node:test";

import { createStore } from "../../static/js/store/store.js";
import { Subscriptions } from "../../static/js/store/subscriptions.js";
import { WatchAlarms } from "../../static/js/table/watch-alarms.js";
import { MOST_WATCHED, WatchList } from "../../static/js/table/watch-list.js";
import { change, hello, NOW, row, SHIPS, snapshot, status } from "./helpers.mjs";

const WATCHED_VIEW = 2 ** 40;
const MINUTE = 60_000;

/** A page that watches the ships a and b, with what it told. */
function watching(settings = {}) {
  const store = createStore();
  const told = [];
  const watch = new WatchList(
    { objects: ["a", "b"].map((key) => ({ stream: "ships", key, title: `Ship ${key}` })), ...settings },
    () => {},
  );
  const alarms = new WatchAlarms({ store, watch, raise: (text, rising) => told.push([text, rising]) });
  store.apply(hello(SHIPS), NOW);
  store.setLink("open", NOW);
  store.apply({ type: "view.status", views: {}, watched: { ships: WATCHED_VIEW } }, NOW);
  store.apply(status(7), NOW);
  const live = (nowMs) =>
    store.apply({ type: "engine.status", space: "earth", alive: true, lag_ms: 1, elements_per_s: 1 }, nowMs);
  live(NOW);
  return { store, watch, alarms, told, live, take: () => told.splice(0) };
}

test("the watch list is remembered, and has a bound", () => {
  let changes = 0;
  const watch = new WatchList(null, () => changes++);
  assert.equal(watch.toggle("ships", "a", "Anna"), true);
  assert.equal(watch.toggle("buses", "a", "Bus"), true);
  watch.set({ silentMin: 3 });
  const again = new WatchList(JSON.parse(JSON.stringify(watch.kept())), () => {});
  assert.deepEqual(again.byStream(), { ships: ["a"], buses: ["a"] });
  assert.equal(again.settings.silentMin, 3);
  assert.equal(again.has("ships", "a"), true);
  assert.equal(again.toggle("ships", "a"), false);
  assert.equal(again.has("ships", "a"), false);
  for (let i = again.size; i < MOST_WATCHED; i++) again.toggle("ships", `k${i}`, "");
  assert.equal(again.toggle("ships", "one more", ""), null);
  assert.equal(changes, 3);
});

test("a watched object that enters or leaves a shown query is told, and others are not", () => {
  const { store, watch, alarms, take } = watching();
  store.apply(snapshot(7), NOW);
  store.apply(change(7, row("+", "a", 0, 0, { properties: { name: "Anna" } }), row("+", "c", 0, 0)), NOW);
  alarms.follow();
  assert.deepEqual(take(), [["Anna entered \u201cQuery 7\u201d: moved in.", true]]);
  alarms.follow();
  assert.deepEqual(take(), []);
  store.apply(change(7, row("-", "a", 5, 5, { properties: { name: "Anna" } })), NOW);
  alarms.follow();
  assert.deepEqual(take(), [["Anna left \u201cQuery 7\u201d: moved out.", false]]);
  store.show(7, false);
  store.apply(change(7, row("+", "b", 0, 0)), NOW);
  alarms.follow();
  store.show(7, true);
  watch.set({ crossings: false });
  store.apply(change(7, row("-", "b", 0, 0)), NOW);
  alarms.follow();
  assert.deepEqual(take(), []);
});

test("a watched object that falls silent is told once, until it is heard of again", () => {
  const { store, alarms, live, take } = watching({ silentMin: 2 });
  store.apply(snapshot(WATCHED_VIEW, row("+", "a", 0, 0), row("+", "b", 0, 0)), NOW);
  alarms.look(NOW + MINUTE);
  assert.deepEqual(take(), []);
  const later = NOW + 2.5 * MINUTE;
  store.apply(change(WATCHED_VIEW, row("~", "b", 1, 1, { time_us: later * 1000 })), later);
  alarms.look(later);
  assert.deepEqual(take(), [], "without a live connection nothing is known");
  live(later);
  alarms.look(later);
  alarms.look(later);
  assert.deepEqual(take(), [["Ship a has not been heard of for 3 min.", false]]);
  store.apply(change(WATCHED_VIEW, row("~", "a", 1, 1, { time_us: later * 1000 })), later);
  alarms.look(later);
  const expired = { ...row("-", "a", 1, 1, { time_us: (later + 1) * 1000 }), reason: "expired" };
  store.apply(change(WATCHED_VIEW, expired), later);
  alarms.look(later);
  assert.deepEqual(take(), [["Ship a is not heard of any more.", false]]);
});

test("the page asks for all objects of a stream, and for the watched ones, only while it needs them", () => {
  const sent = [];
  const store = createStore();
  const asked = { whole: [], watched: {} };
  const subscriptions = new Subscriptions({
    store,
    socket: { open: true, send: (message) => sent.push(message) },
    bounds: () => ({ west: 0, south: 0, east: 1, north: 1 }),
    shown: () => false,
    wanted: () => true,
    whole: () => asked.whole,
    watched: () => asked.watched,
  });
  const take = () => sent.splice(0).map(({ type, streams, whole, watched }) => [type, streams, whole, watched]);
  store.apply(hello(SHIPS), NOW);
  subscriptions.view();
  assert.deepEqual(take(), [["view.unsubscribe", undefined, undefined, undefined]]);
  asked.whole = ["ships", "a stream that is not there"];
  subscriptions.view();
  assert.deepEqual(
    take(),
    [["view.subscribe", ["ships"], ["ships"], undefined]],
    "also if the map does not show the stream",
  );
  subscriptions.view();
  assert.deepEqual(take(), []);
  Object.assign(asked, { whole: [], watched: { ships: ["a"], gone: ["b"] } });
  subscriptions.view();
  assert.deepEqual(take(), [["view.subscribe", [], undefined, { ships: ["a"] }]]);
});

test("watched objects are on the map beside those in view, and stay while one of both has them", () => {
  const { store } = watching();
  store.apply({ type: "view.status", views: { ships: 5 * 2 ** 40 }, watched: { ships: WATCHED_VIEW } }, NOW);
  store.apply(snapshot(WATCHED_VIEW, row("+", "a", 50, 50)), NOW);
  store.apply(snapshot(5 * 2 ** 40, row("+", "a", 50, 50), row("+", "c", 0, 0)), NOW);
  store.apply(change(5 * 2 ** 40, row("-", "a", 60, 60, { time_us: (NOW + 1) * 1000 })), NOW);
  assert.equal(store.objects.live, 2);
  store.apply({ type: "view.status", views: { ships: 5 * 2 ** 40 } }, NOW);
  assert.equal(store.objects.live, 1);
});
