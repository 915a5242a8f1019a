import assert from "node:assert/strict";
import { test } from "node:test";

import { columnsOf } from "../../static/js/store/frames.js";
import { KINDS } from "../../static/js/objects/object-kinds.js";
import { EVENTS_KEPT } from "../../static/js/store/store-events.js";
import { createStore } from "../../static/js/store/store.js";
import { change, hello, NOW, row, SHIPS, snapshot, status } from "./helpers.mjs";

function opened(...messages) {
  const store = createStore();
  for (const message of [hello(SHIPS), ...messages]) store.apply(message, NOW);
  return store;
}

const VIEW = { type: "view.status", views: { ships: 90 } };

test("an object stays on the map until it has left the last answer that held it", () => {
  const store = opened(status(7), VIEW, snapshot(90, row("+", "a", 1, 1)), snapshot(7), change(7, row("+", "a", 1, 1)));
  store.apply(change(90, row("-", "a", 1, 1)), NOW);
  assert.equal(store.objects.live, 1);
  store.apply(change(7, row("-", "a", 1, 1)), NOW);
  assert.equal(store.objects.live, 0);
});

test("an object in an answer takes the query's colour, and its own again when it leaves", () => {
  const store = opened(status(7), VIEW, snapshot(90, row("+", "a", 1, 1)), change(7, row("+", "a", 1, 1)));
  const slot = store.objects.slot("ships", "a");
  assert.equal(store.objects.colour[slot], store.queries.get(7).colour);
  store.apply(change(7, row("-", "a", 2, 2)), NOW);
  assert.equal(store.objects.colour[slot], -1);
});

test("a hidden query colours nothing", () => {
  const store = opened(status(7), change(7, row("+", "a", 1, 1)));
  store.show(7, false);
  assert.equal(store.objects.colour[store.objects.slot("ships", "a")], -1);
});

test("an older statement never moves an object back", () => {
  const store = opened(VIEW, snapshot(90, row("+", "a", 5, 5)));
  store.apply(change(90, row("~", "a", 1, 1, { time_us: NOW * 1000 - 1 })), NOW);
  assert.equal(store.objects.lon[store.objects.slot("ships", "a")], 5);
});

test("the first snapshot makes no events; a later one makes those that were missed", () => {
  const store = opened(status(7), snapshot(7, row("+", "a", 1, 1), row("+", "b", 1, 1)));
  assert.equal(store.events.length, 0);
  store.apply(snapshot(7, row("+", "b", 1, 1), row("+", "c", 1, 1)), NOW);
  assert.deepEqual(
    store.events.map((e) => [e.sign, e.key]),
    [
      [1, "c"],
      [-1, "a"],
    ],
  );
  assert.equal(store.count(7), 2);
});

test("views make no events", () => {
  assert.equal(opened(VIEW, change(90, row("+", "a", 1, 1), row("-", "a", 1, 1))).events.length, 0);
});

test("moves inside an answer make no events", () => {
  assert.equal(opened(status(7), change(7, row("+", "a", 1, 1), row("~", "a", 2, 1))).events.length, 1);
});

test("a repeated departure is one event", () => {
  const store = opened(status(7), VIEW, snapshot(90, row("+", "a", 1, 1)));
  store.apply(change(7, row("+", "a", 1, 1), row("-", "a", 1, 1), row("-", "a", 1, 1)), NOW);
  assert.deepEqual(
    store.events.map((e) => e.sign),
    [1, -1],
  );
});

test("events are bounded, and unread ones are counted until they are read", () => {
  const store = opened(status(7));
  for (let i = 0; i < 3 * EVENTS_KEPT; i++) store.apply(change(7, row("+", `k${i}`, 1, 1)), NOW);
  assert.ok(store.events.length <= 2 * EVENTS_KEPT);
  assert.equal(store.unread, 3 * EVENTS_KEPT);
  store.readEvents();
  assert.equal(store.unread, 0);
});

test("a cancelled query leaves the list and takes its answer along", () => {
  const store = opened(status(7), change(7, row("+", "a", 1, 1)), status(7, { status: "cancelled" }));
  assert.deepEqual([store.listed().length, store.objects.live], [0, 0]);
});

test("queries that are not on the list any more after it was asked for anew are forgotten", () => {
  const store = opened(status(7), status(8), change(7, row("+", "a", 1, 1)));
  store.restate();
  for (const message of [{ type: "query.listed", queries: [status(8)], total: 1, next: null }, status(9)])
    store.apply(message, NOW);
  store.forgetUnstated();
  assert.deepEqual(
    store.listed().map((q) => q.query),
    [8, 9],
  );
  assert.equal(store.objects.live, 0);
});

test("an answer that is not shown any more is forgotten, and makes no events when it comes back", () => {
  const store = opened(status(7), snapshot(7, row("+", "a", 1, 1)));
  store.dropAnswers([7]);
  assert.deepEqual(
    [store.objects.live, store.answered(7), store.heldOf(7), store.listed().length],
    [0, false, null, 1],
  );
  store.apply(snapshot(7, row("+", "b", 1, 1)), NOW);
  assert.deepEqual([store.count(7), store.events.length], [1, 0]);
});

test("a view that ends takes its objects along", () => {
  const store = opened(VIEW, snapshot(90, row("+", "a", 1, 1)), { type: "view.status", views: {} });
  assert.equal(store.objects.live, 0);
});

test("a query has the colour and the line of its look on every page, and its objects follow another one", () => {
  const store = opened({ ...status(7), look: 11 }, snapshot(7, row("+", "a", 1, 1)), { ...status(15), look: 3 });
  const [first, second] = [store.queries.get(7), store.queries.get(15)];
  assert.deepEqual([first.colour, first.line, second.colour, second.line], [3, 1, 3, 0]);
  store.apply({ ...status(7), look: 6 }, 0);
  assert.deepEqual([store.queries.get(7).colour, store.queries.get(7).line], [6, 0]);
  assert.equal(store.objects.colour[store.objects.slot("ships", "a")], 6);
  const layer = (name, look) => ({ type: "layer.status", layer: { name, look, status: "ready" } });
  for (const one of [layer("b", 8), layer("a", 2)]) store.apply(one, 0);
  assert.deepEqual([store.layers.get("a").colour, store.layers.get("b").colour, store.layers.get("b").line], [2, 2, 1]);
});

test("a plan that is told again is the same object, and one that was changed is another", () => {
  const store = opened(status(7));
  const { plan } = store.queries.get(7);
  store.apply(
    { type: "query.listed", queries: [status(7, { plan: structuredClone(plan) })], total: 1, next: null },
    NOW,
  );
  assert.equal(store.queries.get(7).plan, plan);
  store.apply(status(7, { plan: { ...plan, where: "speed_mps > 5" } }), NOW);
  assert.equal(store.queries.get(7).plan.where, "speed_mps > 5");
});

test("answers of a query that emits all are events, and keep no answer", () => {
  const plan = { ...status(7).plan, emit: "all" };
  const store = opened(status(7, { plan }), VIEW, snapshot(90, row("+", "a", 1, 1)), change(7, row("+", "a", 1, 1)));
  assert.deepEqual([store.events.length, store.count(7)], [1, 0]);
});

test("recorded times do not look old: a stream's clock is that of its newest element", () => {
  const old = { time_us: (NOW - 86_400_000) * 1000 };
  const older = { time_us: (NOW - 90_000_000) * 1000 };
  const store = opened(VIEW, snapshot(90, row("+", "a", 1, 1, old), row("+", "b", 1, 1, older)));
  assert.equal(store.ageMs(store.objects.slot("ships", "a"), NOW), 0);
  assert.equal(store.ageMs(store.objects.slot("ships", "b"), NOW + 1000), 3_601_000);
});

test("one clock that runs ahead does not make the others stale", () => {
  const ahead = { time_us: (NOW + 86_400_000) * 1000 };
  const store = opened(VIEW, snapshot(90, row("+", "a", 1, 1), row("+", "b", 1, 1, ahead)));
  assert.equal(store.ageMs(store.objects.slot("ships", "a"), NOW), 0);
});

test("the badge tells live, slow, engine down and reconnecting apart", () => {
  const store = opened();
  store.setLink("open", NOW);
  const engine = (more) => store.apply({ type: "engine.status", alive: true, lag_ms: 100, ...more }, NOW);
  engine({});
  assert.equal(store.connection(NOW), "live");
  assert.equal(store.connection(NOW + 5000), "slow");
  assert.equal(store.connection(NOW + 20_000), "down");
  engine({ lag_ms: 5000 });
  assert.equal(store.connection(NOW), "slow");
  engine({ alive: false });
  assert.equal(store.connection(NOW), "down");
  store.setLink("reconnecting", NOW);
  assert.equal(store.connection(NOW), "reconnecting");
});

test("a page that the server refuses knows the reason until it is let in", () => {
  const store = opened();
  store.setLink("open", NOW);
  store.setLink("full", NOW, "a user may have at most 32 connections");
  assert.deepEqual([store.connection(NOW), store.link.reason], ["full", "a user may have at most 32 connections"]);
  store.setLink("open", NOW + 1000);
  assert.deepEqual([store.connection(NOW + 1000), store.link.reason], ["loading", ""]);
});

test("a server that hears nothing of the engine says so, and the engine is down after a while", () => {
  const store = opened();
  store.setLink("open", NOW);
  const engine = (alive, atMs) => store.apply({ type: "engine.status", alive, lag_ms: 100 }, atMs);
  engine(true, NOW);
  engine(null, NOW + 3000);
  assert.equal(store.connection(NOW + 3000), "live");
  engine(null, NOW + 5000);
  assert.equal(store.connection(NOW + 5000), "slow");
  engine(null, NOW + 11_000);
  assert.equal(store.connection(NOW + 11_000), "down");
  engine(true, NOW + 12_000);
  assert.equal(store.connection(NOW + 12_000), "live");
});

test("a page that comes back after a long break does not take the engine for down before it is told of it", () => {
  const store = opened();
  store.setLink("open", NOW);
  for (const alive of [true, false]) {
    store.apply({ type: "engine.status", alive, lag_ms: 100 }, NOW);
    store.setLink("reconnecting", NOW + 8000);
    store.setLink("open", NOW + 60_000);
    assert.equal(store.connection(NOW + 60_500), "loading");
  }
});

test("the badge is not live by a lag that it does not show: after a start or a break the newest answer says how far the engine is", () => {
  const store = opened(status(7), VIEW);
  for (const at of [NOW, NOW + 60_000]) {
    store.setLink("open", at);
    assert.deepEqual([store.connection(at), store.behindMs()], ["loading", NaN]);
    store.apply({ ...snapshot(90, row("+", "a", 1, 1)), lag_ms: 16_900 }, at);
    assert.deepEqual([store.connection(at), store.behindMs()], ["slow", 16_900]);
    store.apply({ type: "engine.status", alive: true, lag_ms: 300 }, at);
    assert.deepEqual([store.connection(at), store.behindMs()], ["live", 300]);
    store.setLink("reconnecting", at + 1000);
  }
});

test("the data is as old as the newest report that the answers take into account, also of objects out of view", () => {
  const store = opened(VIEW);
  store.apply({ ...snapshot(90, row("+", "a", 1, 1)), lag_ms: 16_900 }, NOW);
  assert.equal(NOW - store.dataMs, 16_900);
  assert.equal(store.streams.get("ships").receivedMs, store.dataMs);
  const engine = { type: "engine.status", alive: true, lag_ms: 100, newest_us: (NOW + 5000) * 1000 };
  store.apply(engine, NOW + 6000);
  assert.equal(store.dataMs, NOW + 5000);
  store.apply({ ...change(90), lag_ms: null }, NOW + 9000);
  assert.equal(store.dataMs, NOW + 5000);
  const idle = opened({ ...engine, lag_ms: null, newest_us: null });
  idle.apply({ type: "stream.status", streams: { ships: { last_us: (NOW - 7000) * 1000 } } }, NOW);
  assert.equal(idle.dataMs, NOW - 7000);
});

test("an answer of an unknown query changes nothing", () => {
  assert.equal(opened(change(55, row("+", "a", 1, 1))).objects.live, 0);
});

test("a trail keeps the newest places, oldest first", () => {
  const store = opened(VIEW);
  for (let i = 0; i < 200; i++)
    store.apply(
      change(90, row("~", "a", i / 10, 0, { time_us: (NOW + 10_000 * i) * 1000, properties: { speed_mps: i } })),
      NOW,
    );
  const { n, x, value } = store.objects.trails.read(store.objects.slot("ships", "a"));
  assert.equal(n, 128);
  assert.ok(x[0] < x[n - 1]);
  assert.ok(Math.abs(x[n - 1] - (19.9 / 360 + 0.5)) < 1e-9);
  assert.deepEqual([value[0], value[n - 1]], [72, 199]);
});

test("a slot that is used again has no trail and no colour of the object before", () => {
  const store = opened(
    status(7),
    VIEW,
    change(7, row("+", "a", 1, 1), row("-", "a", 1, 1)),
    change(90, row("+", "b", 2, 2)),
  );
  const slot = store.objects.slot("ships", "b");
  assert.deepEqual([slot, store.objects.colour[slot], store.objects.trails.read(slot).n], [0, -1, 1]);
});

test("objects in a box are counted by stream, the busiest first, across the antimeridian too", () => {
  const store = opened(
    VIEW,
    snapshot(90, row("+", "a", 179, 1), row("+", "b", -179, 1), row("+", "c", -170, 1), row("+", "d", 180, 9)),
  );
  const count = (lo, hi) => [...store.objects.countIn({ lo, hi })];
  assert.deepEqual(count([175, 0], [185, 2]), [["ships", 2]]);
  assert.deepEqual(count([-180, -90], [180, 90]), [["ships", 4]]);
  assert.deepEqual(count([-179, 1], [-170, 1]), [["ships", 2]]);
  assert.deepEqual(count([0, 0], [1, 1]), []);
  store.objects.ensure("aircraft", 1, "no position");
  for (const [key, lon] of [
    ["x", -179],
    ["y", -178],
    ["z", -177],
  ]) {
    const slot = store.objects.ensure("aircraft", 1, key);
    store.objects.lon[slot] = lon;
    store.objects.lat[slot] = 1;
  }
  assert.deepEqual(count([175, 0], [185, 2]), [
    ["aircraft", 3],
    ["ships", 2],
  ]);
});

test("the map shows the streams, queries and engine of geographic spaces only", () => {
  const store = createStore();
  const spaces = [
    { name: "earth", geographic: true },
    { name: "prices", geographic: false },
  ];
  const shares = { ...SHIPS, name: "shares", space: "prices" };
  const engine = { type: "engine.status", alive: true, lag_ms: 100, elements_per_s: 1 };
  const messages = [
    { ...hello({ ...SHIPS, space: "earth" }, shares), spaces },
    status(7, { space: "earth" }),
    status(8, { space: "prices", stream: "shares", plan: { stream: "shares", compare: { lo: [100], hi: [null] } } }),
    { ...engine, space: "earth" },
    { ...engine, space: "prices", alive: false },
  ];
  for (const message of messages) store.apply(message, NOW);
  assert.deepEqual([...store.streams.keys()], ["ships"]);
  assert.deepEqual([...store.queries.keys()], [7]);
  assert.equal(store.engine.alive, true);
  assert.deepEqual([store.maps("earth"), store.maps("prices")], [true, false]);
});

test("a stream that comes, changes or goes while the page is connected is listed as it is now", () => {
  const store = opened(VIEW, snapshot(90, row("+", "anna", 24.5, 59.7)));
  store.apply({ type: "stream.status", streams: { ships: { state: "running" } } }, NOW);
  const buses = { ...SHIPS, name: "buses", title: "Buses", icon: "bus" };
  store.apply({ type: "stream.list", streams: [{ ...SHIPS, title: "Boats", icon: "aircraft" }, buses] }, NOW);
  assert.deepEqual(
    [...store.streams.values()].map(({ name, title }) => [name, title]),
    [
      ["ships", "Boats"],
      ["buses", "Buses"],
    ],
  );
  assert.equal(store.streams.get("ships").health.state, "running");
  assert.equal(store.streams.get("ships").newestMs, NOW);
  assert.equal(KINDS[store.objects.kind[store.objects.slot("ships", "anna")]], "aircraft");
  store.apply({ type: "stream.list", streams: [buses] }, NOW);
  assert.deepEqual([...store.streams.keys()], ["buses"]);
});

test("a stream that comes back in another space begins anew, and one outside of the map's spaces is not listed", () => {
  const store = opened(VIEW, snapshot(90, row("+", "anna", 24.5, 59.7)));
  const spaces = [
    { name: "moon", geographic: true },
    { name: "prices", geographic: false },
  ];
  const shares = { ...SHIPS, name: "shares", space: "prices" };
  store.apply({ type: "stream.list", spaces, streams: [{ ...SHIPS, space: "moon" }, shares] }, NOW);
  assert.deepEqual([...store.streams.keys()], ["ships"]);
  assert.ok(Number.isNaN(store.streams.get("ships").newestMs));
});

test("the stream near a place is that of the nearest object, across the antimeridian too", () => {
  const { objects } = createStore();
  assert.equal(objects.streamNear([0, 0]), undefined);
  const rows = columnsOf([row("+", "a", 179, 1), row("+", "b", 170, 1)]);
  objects.update(objects.ensure("ships", 0, "a"), rows, 0);
  objects.update(objects.ensure("buses", 2, "b"), rows, 1);
  assert.deepEqual(
    [
      [-179, 1],
      [172, 2],
      [171, 1],
      [176, 1],
    ].map((at) => objects.streamNear(at)),
    ["ships", "buses", "buses", "ships"],
  );
});

test("a page without a network says that it is offline, and nothing of the engine", () => {
  const store = createStore();
  store.setLink("offline", NOW);
  assert.equal(store.connection(NOW + 60_000), "offline");
  store.apply({ type: "engine.status", alive: false }, NOW);
  assert.equal(store.connection(NOW + 60_000), "offline");
});

test("an entry between two reports is an event at its own time and place, with the times of the reports", () => {
  const store = opened(status(7), VIEW, snapshot(90, row("+", "a", 9, 9)));
  const passage = {
    time_us: NOW * 1000 - 5_000_000,
    interpolated: true,
    from_us: NOW * 1000 - 9_000_000,
    to_us: NOW * 1000,
  };
  store.apply(change(7, row("+", "a", 3, 4, passage)), NOW);
  const [event] = store.events;
  assert.deepEqual([event.interpolated, event.timeMs, event.lon, event.lat], [true, NOW - 5000, 3, 4]);
  assert.deepEqual([event.fromMs, event.toMs], [NOW - 9000, NOW]);
  assert.equal(store.objects.lon[store.objects.slot("ships", "a")], 9); // where the newer report says that it is
  store.apply(change(7, row("-", "a", 5, 5)), NOW);
  assert.equal(store.events[1].interpolated, undefined);
});
