import assert from "node:assert/strict";
import { test } from "node:test";

import { EventGroups } from "../../static/js/events/event-groups.js";
import { errorField } from "../../static/js/queries/error-field.js";
import { happened, spanText } from "../../static/js/format.js";
import { planText } from "../../static/js/kinds/plan-text.js";
import { KINDS, kindOf, planOf } from "../../static/js/kinds/registry.js";
import { drawEncounters } from "../../static/js/map/pair-lines.js";
import { createStore } from "../../static/js/store/store.js";
import { timesAmong } from "../../static/js/kinds/join/time-joins.js";
import { change, hello, NOW, row, SHIPS, snapshot, status } from "./helpers.mjs";

const timesOf = (plan) => timesAmong(KINDS, plan);

const PARTNERS = { stream: "ferries", predicate: "dwithin", distance: 500 };
const PLAN = {
  stream: "ships",
  kind: "encounter",
  where: "",
  join: PARTNERS,
  for_s: 1800,
  gap_s: 600,
  lateness_s: 2,
  idle_s: 3,
  mirrored: true,
  emit: "membership",
  away_from: { layer: "ports", distance: 10_000 },
};
const FERRIES = { name: "ferries", title: "Ferries", icon: "ship", enabled: true };
const VIEWS = { type: "view.status", views: { ships: 90, ferries: 91 } };

/** Save a plan as the form does after some of its times have changed. */
function saved(plan, times = {}) {
  const { predicate, distance } = plan.join;
  const join = {
    source: "stream",
    name: "ferries",
    predicate,
    distance,
    where: "",
    times: { ...timesOf(plan), ...times },
  };
  return planOf(plan, { stream: plan.stream, report: "join", where: plan.where, box: null, join });
}

function pair(sign, key, partner, more = {}) {
  const report = {
    key: partner,
    properties: { name: `MS ${partner}` },
    distance: 320,
    time_us: (NOW + 12_000) * 1000,
    bounds: [3, 2, null, 3, 2, null],
  };
  return row(sign, key, 1, 1, { partner: report, since_us: NOW * 1000, ...more });
}

function opened(...messages) {
  const store = createStore();
  for (const message of [hello(SHIPS, FERRIES), VIEWS, status(7, { plan: PLAN }), ...messages])
    store.apply(message, NOW);
  return store;
}

test("encounters that are opened and saved stay the same, and take their keys along to no other query", () => {
  assert.deepEqual(saved(PLAN), PLAN);
  assert.equal(kindOf(PLAN).report, "join");
  assert.equal("away_from" in saved(PLAN, { away: "" }), false);
  assert.deepEqual(saved(PLAN, { forMin: 5, away: "piers", awayM: 20 }).away_from, { layer: "piers", distance: 20 });
  assert.deepEqual(saved(PLAN, { when: "now" }), {
    stream: "ships",
    where: "",
    kind: "join",
    join: PARTNERS,
    emit: "membership",
  });
  const window = saved({ ...PLAN, emit: "changes" }, { when: "window" });
  assert.deepEqual(
    [window.kind, window.for_s, window.away_from, window.emit],
    ["window_join", undefined, undefined, undefined],
  );
});

test("encounters are told in words", () => {
  const told = planText(PLAN, (_, name) => name);
  assert.equal(told, "within 500 m of ferries for at least 30 min, more than 10 km from ports");
});

test("an error about an encounter is shown at its field", () => {
  const field = (message) => errorField("plan", message);
  assert.equal(field("for_s must be a finite number, at least 0; got -1"), "forMin");
  assert.equal(field("away_from: distance must be a finite number that is not negative; got -1"), "away");
});

test("a card counts the encounters that last, and no object moves to where two were nearest", () => {
  const ships = snapshot(90, row("+", "a", 50, 50));
  const store = opened(ships, snapshot(7, pair("+", "a", "X")), change(7, pair("+", "b", "X"), pair("~", "a", "X")));
  assert.equal(store.lastingCount(7), 2);
  assert.deepEqual([store.objects.lon[store.objects.slot("ships", "a")], store.objects.live], [50, 1]);
  store.apply(change(7, pair("-", "a", "X", { until_us: (NOW + 60_000) * 1000 })), NOW);
  assert.equal(store.lastingCount(7), 1);
  store.apply(status(7, { plan: { ...PLAN, kind: "join", emit: "changes" } }), NOW);
  assert.deepEqual([store.lastingCount(7), store.encounters.has(7)], [null, false]);
});

test("an encounter begins and ends as events, with both objects", () => {
  const over = pair("-", "a", "X", { until_us: (NOW + 2_400_000) * 1000, reason: "partner_moved" });
  const store = opened(snapshot(7), change(7, pair("+", "a", "X")), change(7, pair("~", "a", "X")), change(7, over));
  const [begun, ended] = store.events;
  assert.deepEqual(
    store.events.map((event) => happened("MS A", event)),
    ["MS A meets MS X, 320 m", "MS A parted from MS X after 40 min, 320 m"],
  );
  assert.equal(spanText(begun), "since 12:00:00 \u00b7 nearest at 12:00:12");
  assert.equal(spanText(ended), "12:00:00 to 12:40:00 \u00b7 nearest at 12:00:12 \u00b7 partner moved away");
  assert.deepEqual(
    [begun.timeMs, ended.timeMs, ended.partnerStream, ended.partnerPlace],
    [NOW, NOW + 2_400_000, "ferries", [3, 2]],
  );
  assert.equal(new EventGroups().take(store.events).length, 1);
});

test("what began and ended while the page was away is an event, and the first answer is none", () => {
  const store = opened(snapshot(7, pair("+", "a", "X")));
  assert.equal(store.events.length, 0);
  store.apply(snapshot(7, pair("+", "b", "X")), NOW);
  assert.deepEqual(
    store.events.map(({ key, sign, reason }) => [key, sign, reason]),
    [
      ["b", 1, "snapshot"],
      ["a", -1, "snapshot"],
    ],
  );
});

test("encounters are lines between where both are now, with a diamond where they were nearest", () => {
  const calls = [];
  const context = new Proxy(
    {},
    {
      get:
        (_, name) =>
        (...at) =>
          calls.push([name, ...at.map((number) => Math.round(number))]),
      set: () => true,
    },
  );
  const found = { lon: 0, lat: 0, partnerPlace: [36, 0] };
  const view = { world: 360, middle: 0.5, left: 0, top: 0 };
  drawEncounters(context, [found], {
    view,
    colour: "red",
    edge: "white",
    placesOf: () => [
      [72, 0],
      [108, 0],
    ],
  });
  const at = (name) => calls.filter(([called]) => called === name).map(([, ...place]) => place);
  assert.deepEqual(
    [at("moveTo")[0], at("lineTo")[0]],
    [
      [252, 180],
      [288, 180],
    ],
  );
  assert.deepEqual(at("moveTo").at(-1), [198, 174]);
});
