import assert from "node:assert/strict";
import { test } from "node:test";

import { happened, laterText, planText } from "../../static/js/format.js";
import { columnsOf } from "../../static/js/frames.js";
import { FADE_MS, Meetings } from "../../static/js/meetings.js";
import { planOf, reportOf } from "../../static/js/plan.js";
import { createStore } from "../../static/js/store.js";
import { change, hello, NOW, SHIPS, status } from "./helpers.mjs";

const JOIN = { stream: "ferries", predicate: "dwithin", distance: 500 };
const WINDOW = { stream: "ships", kind: "window_join", join: JOIN, window_s: 60, slide_s: 60, lateness_s: 10, idle_s: 5, where: "", emit: "all" };
const PAIR = {
  sign: "+", key: "a", time_us: 1_700_000_000_000_000, lon: 10, lat: 60, bounds: [10, 60, null, 10, 60, null], reason: "moved", properties: {},
  partner: { key: "f", properties: { name: "Fay" }, distance: 120, time_us: 1_700_000_012_000_000, bounds: [10, 60.001, null, 10, 60.001, null] }, window_us: 0,
};

function told(...rows) {
  const store = createStore();
  for (const message of [hello(SHIPS), { ...status(7), plan: WINDOW }, change(7, ...rows)]) store.apply(message, NOW);
  return store;
}

test("a pair of reports is an event and a line, and moves no object", () => {
  const store = told(PAIR, { ...PAIR, time_us: PAIR.time_us + 1_000_000 });
  assert.equal(store.objects.live, 0);
  const [event, later] = store.events;
  assert.deepEqual([event.key, event.partner, event.partnerStream, event.laterMs, event.distance], ["a", "Fay", "ferries", 12_000, 120]);
  assert.equal(later.laterMs, 11_000);
  assert.match(happened("a", event), /^a met Fay, 120.m apart$/);
  assert.deepEqual([laterText(12_000), laterText(-90_000), laterText(200)], ["12 s later", "90 s before", "at the same time"]);
  const [group] = store.meetings.shown(NOW);
  assert.deepEqual(group.pairs.map(({ from, to }) => [from, to]), [[[10, 60], [10, 60.001]], [[10, 60], [10, 60.001]]]);
});

test("lines fade, then they are gone; those of a query that is gone are not shown", () => {
  const meetings = new Meetings();
  for (const [query, at] of [[1, 0], [2, FADE_MS / 2]]) meetings.add({ query, colour: 3, from: [0, 0], to: [1, 1] }, at);
  const alphas = (at) => meetings.shown(at).map(({ alpha }) => alpha);
  assert.deepEqual(alphas(FADE_MS / 2), [0.5, 1]);
  meetings.drop(2);
  assert.deepEqual(alphas(FADE_MS / 2), [0.5]);
  assert.deepEqual(alphas(FADE_MS), []);
});

test("the columns of a join over event time have the partner's time and place", () => {
  const { partners } = columnsOf([PAIR]);
  assert.deepEqual([partners[0].timeMs, partners[0].at], [1_700_000_012_000, [10, 60.001]]);
});

test("a plan keeps what the form does not show as long as it fits", () => {
  const fields = (when) => ({ stream: "ships", report: "join", where: "", box: null, join: { source: "stream", name: "ferries", ...JOIN, where: "", when } });
  assert.equal(reportOf(WINDOW), "join");
  const longer = planOf(WINDOW, fields({ kind: "window_join", window_s: 300, lateness_s: 10 }));
  assert.deepEqual([longer.kind, longer.window_s, longer.slide_s, longer.idle_s], ["window_join", 300, undefined, 5]);
  const sliding = planOf({ ...WINDOW, slide_s: 20 }, fields({ kind: "window_join", window_s: 300, lateness_s: 10 }));
  assert.equal(sliding.slide_s, 20);
  const interval = planOf(WINDOW, fields({ kind: "interval_join", lower_s: -5, upper_s: 0, lateness_s: 3 }));
  assert.deepEqual([interval.window_s, interval.slide_s, interval.lower_s, interval.idle_s, interval.lateness_s], [undefined, undefined, -5, 5, 3]);
  const now = planOf(WINDOW, fields({ kind: "join" }));
  assert.deepEqual(Object.keys(now).sort(), ["join", "kind", "stream", "where"]);
  const range = planOf(WINDOW, { stream: "ships", report: "inside", where: "", box: { lo: [1, 1], hi: [2, 2] } });
  assert.deepEqual(Object.keys(range).sort(), ["compare", "kind", "report", "stream", "where"]);
});

test("a plan over event time is described in words", () => {
  const words = (plan) => planText(plan, (_, name) => name);
  assert.match(words(WINDOW), /within 500.m of ferries in the same 1 min/);
  assert.match(words({ ...WINDOW, window_s: undefined, lower_s: -10, upper_s: 300 }), /, from 10 s before to 5 min after/);
});
