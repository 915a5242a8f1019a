import assert from "node:assert/strict";
import { test } from "node:test";

import { EventGroups, timesText } from "../../static/js/events/event-groups.js";
import { errorField } from "../../static/js/queries/error-field.js";
import { happened, toldText } from "../../static/js/format.js";
import { planText } from "../../static/js/kinds/plan-text.js";
import { KINDS, kindOf, planOf } from "../../static/js/kinds/registry.js";
import { drawPairs, screenLine } from "../../static/js/map/pair-lines.js";
import { missedNote } from "../../static/js/queries/query-answer.js";
import { createStore } from "../../static/js/store/store.js";
import { timesAmong } from "../../static/js/kinds/join/time-joins.js";
import { KEPT_MS, lineOf, PAIRS_KEPT, STEPS, ToldPairs } from "../../static/js/events/told-pairs.js";
import { change, hello, NOW, row, SHIPS, snapshot, status } from "./helpers.mjs";

const timesOf = (plan) => timesAmong(KINDS, plan);

const PARTNERS = { stream: "ferries", predicate: "dwithin", distance: 500 };
const WINDOW = {
  stream: "ships",
  kind: "window_join",
  where: "",
  join: PARTNERS,
  window_s: 60,
  slide_s: 60,
  start_s: 5,
  lateness_s: 2,
  idle_s: 3,
  mirrored: true,
  emit: "all",
};
const INTERVAL = {
  stream: "ships",
  kind: "interval_join",
  where: "",
  join: PARTNERS,
  lower_s: -10,
  upper_s: 20,
  bin_s: 30,
  lateness_s: 2,
  idle_s: 3,
  mirrored: false,
  emit: "all",
};

/** Save a plan as the form does after some of its times have changed. */
function saved(plan, times = {}, more = {}) {
  const { predicate, distance } = plan.join;
  const join = {
    source: "stream",
    name: "ferries",
    predicate,
    distance,
    where: "",
    times: { ...timesOf(plan), ...times },
    ...more,
  };
  return planOf(plan, { stream: plan.stream, report: "join", where: plan.where, box: null, join });
}

test("a plan that is opened and saved stays the same", () => {
  const { emit, slide_s: _slide, ...window } = WINDOW;
  assert.deepEqual(saved(WINDOW), window);
  assert.deepEqual(saved({ ...WINDOW, slide_s: 20 }), { ...window, slide_s: 20 });
  const { emit: _emit, bin_s: _bin, ...interval } = INTERVAL;
  assert.deepEqual(saved(INTERVAL), interval);
  assert.deepEqual([kindOf(WINDOW).report, kindOf(INTERVAL).report], ["join", "join"]);
});

test("the form says before and after, and the plan lower and upper", () => {
  const { when, beforeS, afterS, latenessS } = timesOf(INTERVAL);
  assert.deepEqual([when, beforeS, afterS, latenessS], ["interval", 10, 20, 2]);
  const { lower_s, upper_s } = saved(INTERVAL, { beforeS: -5, afterS: 90 });
  assert.deepEqual([lower_s, upper_s], [5, 90]);
  assert.equal(timesOf({ ...INTERVAL, lower_s: 0 }).beforeS, 0);
});

test("bins that somebody chose stay, and others follow the interval", () => {
  assert.equal(saved(INTERVAL, { afterS: 500 }).bin_s, undefined);
  assert.equal(saved({ ...INTERVAL, bin_s: 7 }, { afterS: 500 }).bin_s, 7);
  assert.equal("bin_s" in saved(WINDOW, { when: "interval" }), false);
});

test("a join over event time that becomes another query takes none of its times along", () => {
  const now = saved(WINDOW, { when: "now" });
  assert.deepEqual(now, { stream: "ships", where: "", kind: "join", join: PARTNERS });
  const range = planOf(WINDOW, {
    stream: "ships",
    report: "inside",
    where: "",
    box: { lo: [0, 0], hi: [1, 1] },
    aggregate: null,
  });
  assert.deepEqual(Object.keys(range).sort(), ["compare", "kind", "report", "stream", "where"]);
  const layer = saved(WINDOW, {}, { source: "layer", name: "ports", predicate: "within" });
  assert.deepEqual([layer.kind, layer.window_s], ["join", undefined]);
  assert.deepEqual(
    [saved(now, { when: "interval" }).kind, saved({ ...now, emit: "all" }, { when: "window" }).emit],
    ["interval_join", undefined],
  );
  assert.equal(saved({ ...now, emit: "all" }).emit, "all");
});

test("joins over event time are told in words", () => {
  const told = (plan) => planText(plan, (_, name) => name);
  assert.equal(told(WINDOW), "within 500 m of ferries, in the same 60 s");
  assert.equal(told({ ...WINDOW, slide_s: 20 }), "within 500 m of ferries, in the same 60 s, every 20 s");
  assert.equal(told(INTERVAL), "within 500 m of ferries, from 10 s before to 20 s after");
});

test("an error about a time is shown at its field", () => {
  const field = (message) => errorField("plan", message);
  assert.equal(field("slide_s must be at least a 100th of window_s, 0.02; got 0.001"), "slideS");
  assert.equal(field("window_s must be a finite number, above 0; got 0"), "windowS");
  assert.equal(field("lower_s must be at most upper_s; got 5 and 1"), "beforeS");
  assert.equal(field("lateness_s must be a finite number, at least 0; got -1"), "latenessS");
  assert.equal(field("a window join has the keys window_s; got the unknown colour"), "plan");
});

const FERRIES = { name: "ferries", title: "Ferries", icon: "ship", enabled: true };
const VIEWS = { type: "view.status", views: { ships: 90, ferries: 91 } };

function pair(key, partner, more = {}) {
  const report = {
    key: partner,
    properties: { name: `MS ${partner}` },
    distance: 320,
    time_us: (NOW + 12_000) * 1000,
    bounds: [3, 2, null, 3, 2, null],
  };
  return row("+", key, 1, 1, { partner: report, window_us: NOW * 1000, ...more });
}

function opened(...messages) {
  const store = createStore();
  for (const message of [hello(SHIPS, FERRIES), VIEWS, status(7, { plan: WINDOW }), ...messages])
    store.apply(message, NOW);
  return store;
}

test("a told pair is an event and a line, and no answer", () => {
  const store = opened(snapshot(7), change(7, pair("a", "X"), pair("a", "X"), pair("b", "X")));
  assert.deepEqual(
    store.events.map((event) => happened(event.key, event)),
    ["a met MS X, 320 m", "a met MS X, 320 m", "b met MS X, 320 m"],
  );
  const [{ lon, lat, partnerPlace, partnerStream, partnerTimeMs }] = store.events;
  assert.deepEqual([lon, lat, partnerPlace, partnerStream, partnerTimeMs], [1, 1, [3, 2], "ferries", NOW + 12_000]);
  assert.deepEqual([store.toldCount(7), store.count(7), store.objects.live, store.told.lines.size], [3, 0, 0, 2]);
  assert.deepEqual(
    new EventGroups().take(store.events).map((group) => timesText(group, true)),
    ["reported 2 times", "reported once"],
  );
});

test("what an old report tells moves no object", () => {
  const store = opened(snapshot(90, row("+", "a", 50, 50)), change(7, pair("a", "X")));
  const slot = store.objects.slot("ships", "a");
  assert.deepEqual([store.objects.lon[slot], store.objects.queries[slot]], [50, [90]]);
});

test("an edit between a join of last positions and one over event time begins anew", () => {
  const now = { ...WINDOW, kind: "join", emit: "changes" };
  const store = opened(status(7, { plan: now }), snapshot(7, pair("a", "X")));
  assert.deepEqual([store.toldCount(7), store.count(7)], [null, 1]);
  store.apply(status(7, { plan: WINDOW }), NOW);
  assert.deepEqual([store.answered(7), store.toldCount(7), store.objects.live], [false, 0, 0]);
  store.apply(change(7, { ...pair("a", "X"), sign: "-" }), NOW); // what the edit left behind
  assert.deepEqual([store.answered(7), store.toldCount(7), store.events.length], [true, 0, 0]);
});

test("an event says how close in time its reports were", () => {
  const event = { partner: "MS X", timeMs: NOW, partnerTimeMs: NOW + 12_300, windowMs: null };
  assert.equal(toldText(event), "MS X 12.3 s later");
  assert.equal(toldText({ ...event, partnerTimeMs: NOW - 1000 }), "MS X 1 s earlier");
  assert.equal(toldText({ ...event, partnerTimeMs: NOW }), "at the same time");
  assert.equal(toldText({ ...event, windowMs: NOW }), "window from 12:00:00");
});

test("both objects of a picked pair are selected, until another one is", () => {
  const store = opened(snapshot(90, row("+", "a", 1, 1)), snapshot(91, row("+", "X", 3, 2)), change(7, pair("a", "X")));
  store.selectPair(store.events[0]);
  assert.deepEqual(
    store.selectedSlots().map((slot) => store.objects.keys[slot]),
    ["a", "X"],
  );
  store.select("ferries", "X");
  assert.deepEqual([store.selectedSlots().map((slot) => store.objects.keys[slot]), store.picked], [["X"], null]);
});

test("a line goes the short way round the world, in the copy that is on the screen", () => {
  const { x1, x2 } = lineOf([179, 0], [-179, 0]);
  assert.ok(Math.abs(x2 - x1 - 2 / 360) < 1e-12);
  for (const middle of [0, 1, -3]) {
    const { from, to } = screenLine(lineOf([179, 0], [-179, 0]), { world: 360, middle, left: 360 * middle, top: 0 });
    assert.deepEqual(
      [from, to].map(([x]) => Math.round(x)),
      [-1, 1],
    );
  }
});

const AT = { partnerKey: "X", place: [0, 0], partnerPlace: [90, 0] };

test("a pair that is told again has one line, where it was told last", () => {
  const told = new ToldPairs();
  for (const [i, key] of ["a", "b", "a"].entries())
    told.add({ ...AT, query: 7, key, partnerPlace: [36 * i, 0] }, NOW + i * (KEPT_MS / STEPS));
  const looks = told.groups(NOW + 2 * (KEPT_MS / STEPS)).map(({ step, lines }) => [step, lines.map(({ x2 }) => x2)]);
  assert.deepEqual(
    [looks, told.counts.get(7)],
    [
      [
        [1, [0.6]],
        [0, [0.7]],
      ],
      3,
    ],
  );
});

test("pairs fade in steps, are kept for a while, and the newest alone if there are many", () => {
  const told = new ToldPairs();
  assert.equal(told.fresh(NOW), false);
  for (let i = 0; i < PAIRS_KEPT + 5; i++) told.add({ ...AT, query: 7, key: `${i}` }, NOW);
  told.add({ ...AT, query: 8, key: "a" }, NOW + KEPT_MS / 2);
  const looks = (nowMs) => told.groups(nowMs).map(({ query, step, lines }) => [query, step, lines.length]);
  assert.deepEqual(looks(NOW + KEPT_MS / 2), [
    [7, STEPS / 2, PAIRS_KEPT - 1],
    [8, 0, 1],
  ]);
  assert.deepEqual(looks(NOW + KEPT_MS), [[8, STEPS / 2, 1]]);
  assert.deepEqual(
    [told.fresh(NOW + KEPT_MS), told.fresh(NOW + 2 * KEPT_MS), looks(NOW + 2 * KEPT_MS)],
    [true, false, []],
  );
});

test("thousands of pairs of a query are one stroke, and those of a hidden query none", () => {
  const calls = [];
  const context = new Proxy(
    {},
    {
      get:
        (_, name) =>
        (...at) =>
          calls.push([name, ...at]),
      set: () => true,
    },
  );
  const told = new ToldPairs();
  for (let i = 0; i < 2000; i++) told.add({ ...AT, query: 7 + (i % 2), key: `${i}` }, NOW);
  told.add({ ...AT, query: 7, key: "near", partnerPlace: [0.001, 0] }, NOW);
  const view = { world: 360, middle: 0.5, left: 0, top: 0 };
  drawPairs(context, told, { view, nowMs: NOW, colourOf: (query) => (query === 7 ? "red" : null) });
  const counted = (name) => calls.filter(([called]) => called === name).length;
  assert.deepEqual([counted("stroke"), counted("lineTo"), counted("arc")], [1, 1001, 1]); // a short line has a ring
});

test("a card says how many entries and exits were not sent, over all connections of the page", () => {
  const store = createStore();
  store.apply(hello(SHIPS), NOW);
  store.apply(status(7, { plan: INTERVAL }), NOW);
  assert.equal(missedNote(store, 7), "");
  const missed = { type: "answer.missed", query: 7, missed: 1, uncounted: false };
  store.apply(missed, NOW);
  assert.equal(missedNote(store, 7), "1 entry or exit was not sent: this connection was too slow.");
  store.apply({ ...missed, missed: 17_000 }, NOW);
  store.apply(hello(SHIPS), NOW);
  store.apply({ ...missed, missed: 230, uncounted: true }, NOW);
  assert.match(missedNote(store, 7), /^At least 17.230 entries and exits were not sent/);
  store.apply({ ...missed, query: 8, missed: 0, uncounted: true }, NOW);
  assert.match(missedNote(store, 8), /^Some entries and exits may not have been sent/);
});
