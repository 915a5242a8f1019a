import assert from "node:assert/strict";
import { test } from "node:test";

import {
  countSteps,
  countStyle,
  featureStyle,
  largestCounts,
  layerRank,
  pairedCounts,
} from "../../static/js/layers/features.js";
import { happened, pairedText } from "../../static/js/format.js";
import { NO_COLOUR } from "../../static/js/objects/objects.js";
import { createStore } from "../../static/js/store/store.js";
import { change, hello, NOW, row, SHIPS, snapshot, status } from "./helpers.mjs";

const VIEW = { type: "view.status", views: { ships: 90 } };
const PLAN = { stream: "ships", kind: "join", join: { layer: "forests", predicate: "within" }, emit: "changes" };
const JOIN = status(7, { plan: PLAN });

function opened(...messages) {
  const store = createStore();
  for (const message of [hello(SHIPS), VIEW, JOIN, ...messages]) store.apply(message, NOW);
  return store;
}

function pair(sign, key, partner, more = {}) {
  return row(sign, key, 1, 1, {
    partner: { key: partner, properties: { name: `Forest ${partner}` }, distance: null, ...more },
  });
}

const counts = (store) => Object.fromEntries(store.joinsOf("forests")[0]?.counts ?? []);
const told = (store) => store.events.map((event) => happened(event.key, event));

test("an object stays in a join's answer until its last pair has ended", () => {
  const store = opened(change(7, pair("+", "a", "X"), pair("+", "a", "Y")));
  assert.deepEqual([store.count(7), store.pairCount(7)], [1, 2]);
  store.apply(change(7, pair("-", "a", "X")), NOW);
  assert.deepEqual([store.count(7), store.pairCount(7), store.objects.live], [1, 1, 1]);
  store.apply(change(7, pair("-", "a", "Y")), NOW);
  assert.deepEqual([store.count(7), store.pairCount(7), store.objects.live], [0, 0, 0]);
});

test("a feature's count is that of the objects in its pairs", () => {
  const store = opened(snapshot(7, pair("+", "a", "X"), pair("+", "b", "X"), pair("+", "b", "Y")));
  assert.deepEqual(counts(store), { X: 2, Y: 1 });
  store.apply(change(7, pair("~", "a", "X"), pair("-", "b", "Y"), pair("-", "b", "Y"), pair("+", "c", "X")), NOW);
  assert.deepEqual(counts(store), { X: 3 });
  store.show(7, false);
  assert.deepEqual(counts(store), {});
});

test("an object is outlined while it is in a pair of a query that is shown", () => {
  const store = opened(snapshot(90, row("+", "a", 1, 1)), change(7, pair("+", "a", "X"), pair("+", "a", "Y")));
  const outlined = () => store.objects.paired[store.objects.slot("ships", "a")];
  assert.equal(outlined(), 1);
  store.show(7, false);
  assert.equal(outlined(), 0);
  store.show(7, true);
  store.apply(change(7, pair("-", "a", "X")), NOW);
  assert.equal(outlined(), 1);
  store.apply(change(7, pair("-", "a", "Y")), NOW);
  assert.equal(outlined(), 0);
});

test("an object in a range query's answer is not outlined", () => {
  const store = opened(status(8), change(8, row("+", "a", 1, 1)));
  assert.equal(store.objects.paired[store.objects.slot("ships", "a")], 0);
});

test("events tell of pairs by name", () => {
  const store = opened(
    snapshot(7),
    change(7, pair("+", "bus 12", "X"), pair("~", "bus 12", "X"), pair("-", "bus 12", "X")),
  );
  assert.deepEqual(told(store), ["bus 12 entered Forest X", "bus 12 left Forest X"]);
});

test("a later snapshot tells of the pairs that changed meanwhile, and of those alone", () => {
  const store = opened(snapshot(7, pair("+", "a", "X"), pair("+", "a", "Y"), pair("+", "b", "X")));
  assert.equal(store.events.length, 0);
  store.apply(snapshot(7, pair("+", "a", "Y"), pair("+", "a", "Z")), NOW);
  assert.deepEqual(told(store).sort(), ["a entered Forest Z", "a left Forest X", "b left Forest X"]);
  assert.deepEqual([counts(store), store.count(7), store.objects.live], [{ Y: 1, Z: 1 }, 1, 1]);
});

test("a cancelled join takes its pairs along", () => {
  const store = opened(change(7, pair("+", "a", "X")), status(7, { status: "cancelled" }));
  assert.deepEqual([store.joinsOf("forests"), store.objects.live], [[], 0]);
});

test("a pair's distance follows the object", () => {
  const store = opened(change(7, pair("+", "a", "X", { distance: 40 }), pair("~", "a", "X", { distance: 12.5 })));
  const [partner] = store.partnersOf(store.objects.slot("ships", "a"));
  assert.deepEqual([partner.key, partner.distance], ["X", 12.5]);
});

test("only what enters or leaves a pair makes the layers be drawn anew", () => {
  const store = opened(change(7, pair("+", "a", "X")));
  let drawn = 0;
  store.on("pairs", () => drawn++);
  store.apply(change(7, pair("~", "a", "X")), NOW);
  store.apply(change(90, row("+", "b", 1, 1)), NOW);
  assert.equal(drawn, 0);
  store.apply(change(7, pair("-", "a", "X"), pair("+", "a", "Y")), NOW); // as many pairs as before
  assert.equal(drawn, 1);
});

test("verbs suit the predicate", () => {
  const words = (predicate, sign) => happened("a", { partner: "X", predicate, sign });
  assert.equal(words("dwithin", 1), "a came near X");
  assert.equal(words("disjoint", -1), "a met X");
  assert.equal(words("intersects", -1), "a left X");
  assert.equal(happened("a", { partner: null, sign: 1 }), "a");
});

test("counts of several joins add up, and the largest is full", () => {
  const joins = [
    {
      counts: new Map([
        ["X", 2],
        ["Y", 1],
      ]),
    },
    { counts: new Map([["X", 3]]) },
  ];
  const paired = pairedCounts(joins);
  assert.deepEqual([paired.of("X"), paired.of("Y"), paired.of("Z"), paired.most], [5, 1, 0, 5]);
  assert.ok(countStyle(0, 1, "#f00").fillOpacity > countStyle(0, 0.2, "#f00").fillOpacity);
  assert.ok(countStyle(1, 1, "#f00").weight > countStyle(1, 0, "#f00").weight);
});

test("a legend's numbers go from none to the largest count, without repeats", () => {
  assert.deepEqual([0, 1, 3, 90].map(countSteps), [[0], [0, 1], [0, 1, 3], [0, 10, 40, 90]]);
});

test("the largest counts of all joins of a layer are written onto it", () => {
  const joins = [
    {
      counts: new Map([
        ["X", 2],
        ["Y", 1],
      ]),
    },
    {
      counts: new Map([
        ["Y", 3],
        ["Z", 1],
      ]),
    },
  ];
  assert.deepEqual(largestCounts(joins, 2), [
    ["Y", 4],
    ["X", 2],
  ]);
  assert.equal(pairedText(joins), "7 pairs now, with 3 features");
  assert.equal(pairedText([{ counts: new Map([["X", 1]]) }]), "1 pair now, with 1 feature");
});

test("a layer's legend looks like its features; like areas where they are mixed", () => {
  const ranks = [
    ["Polygon", "MultiPolygon"],
    ["LineString"],
    ["MultiPoint"],
    ["Point", "Polygon"],
    ["GeometryCollection"],
    null,
  ].map(layerRank);
  assert.deepEqual(ranks, [0, 1, 2, 0, 0, 0]);
});

test("a feature in a pair is lit in the query's colour", () => {
  const plain = { rank: 0, colour: "#111", accent: "#222" };
  const lit = featureStyle({ ...plain, paired: "#333" });
  assert.equal(lit.color, "#333");
  assert.ok(lit.fillOpacity > featureStyle(plain).fillOpacity);
});

const FERRIES = { name: "ferries", title: "Ferries", icon: "ship", enabled: true };
const NEAR = {
  stream: "ships",
  kind: "join",
  join: { stream: "ferries", predicate: "dwithin", distance: 50 },
  emit: "changes",
};

function withFerries(...messages) {
  const store = createStore();
  const views = { type: "view.status", views: { ships: 90, ferries: 91 } };
  for (const message of [hello(SHIPS, FERRIES), views, status(7, { plan: NEAR }), ...messages])
    store.apply(message, NOW);
  const look = (key) => {
    const slot = store.objects.slot("ferries", key);
    return [store.objects.paired[slot], store.objects.colour[slot]];
  };
  return { store, look, lit: [1, store.queries.get(7)?.colour], plain: [0, NO_COLOUR] };
}

test("an object that is a partner is lit in the query's colour while it is in a pair, whichever was told first", () => {
  const ferries = snapshot(91, row("+", "X", 1, 1), row("+", "Y", 1, 1));
  const pairs = change(7, pair("+", "a", "X"), pair("+", "b", "X"));
  for (const messages of [
    [ferries, pairs],
    [pairs, ferries],
  ]) {
    const { store, look, lit, plain } = withFerries(...messages);
    assert.deepEqual([look("X"), look("Y")], [lit, plain]);
    store.apply(change(7, pair("-", "a", "X")), NOW);
    assert.deepEqual(look("X"), lit);
    store.apply(change(7, pair("-", "b", "X")), NOW);
    assert.deepEqual(look("X"), plain);
  }
});

test("a partner is lit no more once its query is hidden, edited or ended, or its answer is another", () => {
  const began = [snapshot(91, row("+", "X", 1, 1)), change(7, pair("+", "a", "X"))];
  const ends = [
    (store) => store.show(7, false),
    (store) => store.apply(status(7, { plan: PLAN }), NOW),
    (store) => store.apply(status(7, { status: "cancelled" }), NOW),
    (store) => store.apply(snapshot(7, pair("+", "a", "Y")), NOW),
  ];
  for (const end of ends) {
    const { store, look, lit, plain } = withFerries(...began);
    assert.deepEqual(look("X"), lit);
    end(store);
    assert.deepEqual(look("X"), plain);
  }
});

test("a partner keeps the colour of a query whose answer it is in, and is told what it is paired with", () => {
  const own = status(8, { stream: "ferries", plan: { stream: "ferries", area: { lo: [0, 0], hi: [2, 2] } } });
  const { store, look } = withFerries(own, change(8, row("+", "X", 1, 1)), change(7, pair("+", "a", "X")));
  assert.deepEqual(look("X"), [1, store.queries.get(8).colour]);
  assert.deepEqual(
    store.partnersOf(store.objects.slot("ferries", "X")).map(({ key }) => key),
    ["a"],
  );
});
