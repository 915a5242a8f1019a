import assert from "node:assert/strict";
import { test } from "node:test";

import { KEPT_MS, POINTS_KEPT } from "../../static/js/queries/figures.js";
import { focusNote, thresholdName } from "../../static/js/queries/query-answer.js";
import { answerWords } from "../../static/js/queries/query-words.js";
import { createStore } from "../../static/js/store/store.js";
import { change, hello, NOW, row, SHIPS, snapshot, status } from "./helpers.mjs";

const VIEW = { type: "view.status", views: { ships: 90 } };
const AROUND = {
  stream: "ships",
  kind: "range",
  around: { stream: "ships", key: "anna", radius: 9260 },
  emit: "changes",
};
const NEAREST = { stream: "ships", kind: "knn", k: 2, around: { at: [24, 60] }, emit: "changes" };
const COUNT = { ...AROUND, aggregate: { function: "count", thresholds: [{ above: 2 }] } };

function opened(plan, ...messages) {
  const store = createStore();
  for (const message of [hello(SHIPS), VIEW, status(7, { plan }), ...messages]) store.apply(message, NOW);
  return store;
}

function placed(lon, lat, more = {}) {
  return row("@", "anna", lon, lat, { distance: 9260, properties: { name: "MS Anna" }, ...more });
}

function figure(sign, key, value, more = {}) {
  const unbounded = { lon: null, lat: null, bounds: [null, null, null, null, null, null] };
  return row(sign, key, 0, 0, { ...unbounded, properties: { value, count: value }, ...more });
}

function crossing(sign, key, name, value) {
  return figure(sign, key, value, { partner: { key: name, properties: { value } } });
}

test("a query is where its focal object is, which is no member of its answer", () => {
  const store = opened(AROUND, snapshot(7, row("+", "b", 24.1, 60), placed(24, 60)));
  assert.deepEqual([store.count(7), store.objects.slot("ships", "anna"), store.events.length], [1, undefined, 0]);
  const { name, lon, lat, reach, lost } = store.places.get(7);
  assert.deepEqual([name, lon, lat, reach, lost], ["MS Anna", 24, 60, 9260, false]);
  store.apply(change(7, placed(24.5, 60.5)), NOW);
  assert.deepEqual([store.places.get(7).lon, store.places.get(7).lat], [24.5, 60.5]);
});

test("a lost focal object leaves the query where it was, until it is heard again", () => {
  const store = opened(AROUND, snapshot(7, placed(24, 60)));
  store.apply(change(7, placed(null, null, { reason: "expired", bounds: null })), NOW);
  const { lon, lat, lost } = store.places.get(7);
  assert.deepEqual([lon, lat, lost], [24, 60, true]);
  store.apply(snapshot(7, placed(null, null, { reason: "dropped", bounds: null })), NOW);
  assert.equal(store.places.get(7).lon, 24);
  store.apply(change(7, placed(25, 60)), NOW);
  assert.deepEqual([store.places.get(7).lon, store.places.get(7).lost], [25, false]);
});

test("a focal object is silent by the clock of its own stream", () => {
  const store = opened(AROUND, snapshot(7, placed(24, 60)));
  assert.equal(store.focusSilent(7, NOW + 60_000), false);
  assert.equal(store.focusSilent(7, NOW + 400_000), true);
  store.apply(snapshot(90, row("+", "b", 1, 1, { time_us: (NOW + 30_000) * 1000 })), NOW);
  assert.equal(store.focusAgeMs(7, NOW), 30_000);
  assert.ok(Number.isNaN(opened(NEAREST, snapshot(7, placed(24, 60, { key: "", time_us: 0 }))).focusAgeMs(7, NOW)));
});

test("a snapshot without a place takes it away, and so does an edit to a plan without one", () => {
  const store = opened(AROUND, snapshot(7, placed(24, 60)), snapshot(7));
  assert.equal(store.places.has(7), false);
  const edited = opened(AROUND, snapshot(7, placed(24, 60)), status(7));
  assert.equal(edited.places.has(7), false);
});

test("neighbours are listed in the order of their ranks, which change without an event", () => {
  const near = (sign, key, rank, distance) => row(sign, key, 24, 60, { rank, distance });
  const store = opened(NEAREST, snapshot(7, near("+", "b", 2, 800), near("+", "a", 1, 500)));
  const listed = () =>
    store.answers
      .get(7)
      .neighbours()
      .map(({ slot, rank, distance }) => [store.objects.keys[slot], rank, distance]);
  assert.deepEqual(listed(), [
    ["a", 1, 500],
    ["b", 2, 800],
  ]);
  store.apply(change(7, near("~", "a", 2, 900), near("~", "b", 1, 700)), NOW);
  assert.deepEqual(
    [listed(), store.events.length],
    [
      [
        ["b", 1, 700],
        ["a", 2, 900],
      ],
      0,
    ],
  );
  store.apply(change(7, near("-", "a", null, null), near("+", "c", 2, 850)), NOW);
  assert.deepEqual(listed(), [
    ["b", 1, 700],
    ["c", 2, 850],
  ]);
});

test("what an answer comes to is its figure, not the number of objects that it does not have", () => {
  const words = (store) => answerWords(store, store.queries.get(7));
  assert.equal(words(opened(COUNT)).text, "");
  const store = opened(COUNT, snapshot(7, figure("+", "", 3)), change(7, crossing("+", "", "above 2", 3)));
  assert.deepEqual(words(store), { text: "3", title: "3 now", raised: true });
  const grouped = { ...COUNT, aggregate: { function: "count", group_by: "ship_type" } };
  const groups = opened(grouped, snapshot(7, figure("+", "cargo", 3), figure("+", "tanker", 5)));
  assert.deepEqual([words(groups).text, words(groups).title], ["2", "groups"]);
  assert.equal(words(opened(AROUND, snapshot(7, row("+", "b", 24, 60)))).text, "1");
  store.apply(status(7, { plan: COUNT, status: "paused" }), NOW);
  assert.equal(words(store).text, "");
});

test("an aggregate's rows are figures, not objects, and no events", () => {
  const store = opened(COUNT, snapshot(7, figure("+", "", 3), placed(24, 60)), change(7, figure("~", "", 4)));
  assert.deepEqual(
    [store.objects.live, store.events.length, store.answered(7), store.places.get(7).lon],
    [0, 0, true, 24],
  );
  const { value, points } = store.figures.get(7).groups.get("");
  assert.deepEqual(
    [value, points],
    [
      4,
      [
        [NOW, 3],
        [NOW, 4],
      ],
    ],
  );
});

test("groups come, go, and are listed the largest first", () => {
  const plan = { ...COUNT, aggregate: { function: "count", group_by: "ship_type" } };
  const store = opened(plan, snapshot(7, figure("+", "cargo", 3), figure("+", "tanker", 5), figure("+", "null", null)));
  const listed = () =>
    store.figures
      .get(7)
      .ranked()
      .map(([group, { value }]) => [group, value]);
  assert.deepEqual(listed(), [
    ["tanker", 5],
    ["cargo", 3],
    ["null", null],
  ]);
  store.apply(change(7, figure("-", "tanker", 0), figure("~", "null", 9)), NOW);
  assert.deepEqual(listed(), [
    ["null", 9],
    ["cargo", 3],
  ]);
});

test("a threshold is an event when it is crossed and when it is no more, and raised in between", () => {
  const store = opened(COUNT, snapshot(7, figure("+", "", 3)));
  const raised = () => store.figures.get(7).raisedBy("");
  store.apply(change(7, crossing("+", "", "above 2", 3)), NOW);
  store.apply(change(7, crossing("+", "", "above 2", 3)), NOW);
  assert.deepEqual(raised(), ["above 2"]);
  store.apply(change(7, figure("~", "", 1), crossing("-", "", "above 2", 1)), NOW);
  assert.deepEqual(raised(), []);
  assert.deepEqual(
    store.events.map(({ sign, threshold, value }) => [sign, threshold, value]),
    [
      [1, "above 2", 3],
      [-1, "above 2", 1],
    ],
  );
});

test("a later snapshot keeps the points, and tells of the thresholds that were crossed meanwhile", () => {
  const store = opened(
    COUNT,
    snapshot(7, figure("+", "", 1)),
    snapshot(7, figure("+", "", 3), crossing("+", "", "above 2", 3)),
  );
  assert.deepEqual(
    store.figures
      .get(7)
      .groups.get("")
      .points.map(([, value]) => value),
    [1, 3],
  );
  assert.deepEqual(
    store.events.map(({ sign, threshold }) => [sign, threshold]),
    [[1, "above 2"]],
  );
  store.apply(snapshot(7, figure("+", "", 1)), NOW);
  assert.deepEqual(
    store.events.map(({ sign }) => sign),
    [1, -1],
  );
});

test("points are those of the last minutes, and one before says what held when these began", () => {
  const store = opened(COUNT, snapshot(7, figure("+", "", 1)));
  const points = () => store.figures.get(7).groups.get("").points;
  store.apply(change(7, figure("~", "", 2)), NOW + 1000);
  store.apply(change(7, figure("~", "", 3)), NOW + 1000 + KEPT_MS);
  assert.deepEqual(
    points().map(([, value]) => value),
    [2, 3],
  );
  for (let i = 0; i < 2 * POINTS_KEPT; i++) store.apply(change(7, figure("~", "", i)), NOW + KEPT_MS + 2000 + i);
  assert.equal(points().length, POINTS_KEPT);
});

test("an edit from objects to figures and back forgets what was of the other kind", () => {
  const store = opened(AROUND, snapshot(7, row("+", "b", 24, 60)), status(7, { plan: COUNT }));
  assert.deepEqual([store.count(7), store.objects.live], [0, 0]);
  store.apply(change(7, row("-", "b", 24, 60, { reason: "edited" }), figure("+", "", 1)), NOW);
  assert.equal(store.figures.get(7).groups.get("").value, 1);
  store.apply(status(7, { plan: NEAREST }), NOW);
  assert.equal(store.figures.has(7), false);
});

function roles(...regions) {
  return {
    type: "query.roles",
    query: 7,
    regions: regions.map(([region, sent]) => ({ region, sent, last_s: 1, participates: true })),
  };
}

test("tuples are counted since the page was opened, whatever the connection", () => {
  const store = opened(AROUND, roles([0, 5], [1, 7]));
  const sent = () => store.roles.get(7).regions.map((one) => [one.region, one.sent, one.participates]);
  store.apply(roles([0, 6], [1, 7]), NOW);
  assert.deepEqual(sent(), [
    [0, 6, true],
    [1, 7, true],
  ]);
  store.apply(hello(SHIPS), NOW);
  store.apply(roles([1, 2], [3, 1]), NOW);
  store.apply(roles([1, 3], [3, 1]), NOW);
  assert.deepEqual(sent(), [
    [0, 6, false],
    [1, 10, true],
    [3, 1, true],
  ]);
});

test("a query says what has become of its focal object", () => {
  const store = opened(AROUND, snapshot(7));
  const note = (ms = 0) => focusNote(store, store.queries.get(7), NOW + ms);
  assert.equal(note(), "No report of anna yet.");
  store.apply(change(7, placed(24, 60)), NOW);
  assert.equal(note(), "");
  assert.equal(note(1_200_000), "MS Anna is silent: its last report was 20 min ago.");
  store.apply(change(7, placed(24, 60, { reason: "expired" })), NOW);
  assert.equal(
    note(120_000),
    "MS Anna is lost: its last report was 2 min ago. The answer is empty until it reports again.",
  );
});

test("thresholds are called as the engine calls them", () => {
  assert.deepEqual([{ above: 20 }, { below: 0.5, for_s: 300 }].map(thresholdName), ["above 20", "below 0.5 for 300 s"]);
});
