import assert from "node:assert/strict";
import { test } from "node:test";

import { isShown } from "../../static/js/queries/shown-queries.js";
import { createStore } from "../../static/js/store/store.js";
import { Subscriptions } from "../../static/js/store/subscriptions.js";
import { change, hello, NOW, row, SHIPS, snapshot, status } from "./helpers.mjs";

/** A page: its store, what it sends, its clock, and the queries of others that it shows. */
function opened() {
  const page = { sent: [], timers: [], nowMs: 0, wanted: new Set(), store: createStore() };
  page.subscriptions = new Subscriptions({
    store: page.store,
    socket: { open: true, send: (message) => page.sent.push(message) },
    bounds: () => ({ west: 0, south: 0, east: 10, north: 10 }),
    shown: () => true,
    wanted: ({ query, mine }) => mine || page.wanted.has(query),
    now: () => page.nowMs,
    later: (run) => page.timers.push(run),
  });
  page.receive = (message) => {
    if (!page.subscriptions.expects(message)) return false;
    page.store.apply(message, NOW);
    page.subscriptions.follow(message);
    return true;
  };
  page.show = (...queries) => {
    page.wanted = new Set(queries);
    page.subscriptions.refresh();
  };
  page.pass = async (ms) => {
    page.nowMs += ms;
    page.timers.splice(0).forEach((run) => run());
    await new Promise((done) => setTimeout(done, 30)); // subscriptions are gathered for 20 ms
  };
  page.take = (type) =>
    page.sent
      .splice(0)
      .filter((message) => message.type === type)
      .flatMap(({ queries }) => queries);
  page.receive(hello(SHIPS));
  return page;
}

const others = (...numbers) => numbers.map((n) => status(n, { mine: false }));
const listed = (...queries) => ({ type: "query.listed", queries, total: queries.length, next: null });

test("the page subscribes to its own queries and to those of others that it shows", async () => {
  const page = opened();
  page.wanted = new Set([3]);
  page.receive(listed(status(1), status(2, { status: "failed" }), ...others(3, 4, 5)));
  await page.pass(0);
  assert.deepEqual(page.take("query.subscribe"), [1, 3]);
  page.show(3, 4);
  await page.pass(0);
  assert.deepEqual(page.take("query.subscribe"), [4]);
});

test("a query that is shown no more is unsubscribed after a while, and one that comes back before is not", async () => {
  const page = opened();
  page.wanted = new Set([3, 4]);
  page.receive(listed(...others(3, 4)));
  await page.pass(0);
  for (const query of [3, 4]) page.receive(snapshot(query, row("+", `of ${query}`, 1, 1)));
  page.take("query.subscribe");
  page.show();
  await page.pass(4000);
  page.show(4);
  await page.pass(2000);
  assert.deepEqual(page.take("query.unsubscribe"), [3]);
  assert.deepEqual([page.store.answered(3), page.store.answered(4), page.store.objects.live], [false, true, 1]);
  await page.pass(60_000);
  assert.deepEqual(page.sent, []);
});

test("scrolling up and down for a minute subscribes to nothing twice", async () => {
  const page = opened();
  page.wanted = new Set([3]);
  page.receive(listed(...others(3, 4)));
  for (let i = 0; i < 30; i++) {
    page.show(i % 2 ? 3 : 4);
    await page.pass(2000);
  }
  assert.deepEqual(page.take("query.subscribe").sort(), [3, 4]);
});

test("answers that were on their way when the page unsubscribed change nothing", async () => {
  const page = opened();
  page.wanted = new Set([3]);
  page.receive(listed(...others(3)));
  page.receive(snapshot(3, row("+", "a", 1, 1)));
  page.show();
  await page.pass(6000);
  for (const late of [change(3, row("+", "b", 1, 1)), snapshot(3, row("+", "b", 1, 1))])
    assert.equal(page.receive(late), false);
  page.show(3);
  assert.equal(page.receive(change(3, row("+", "b", 1, 1))), false);
  assert.equal(page.receive(snapshot(3, row("+", "c", 1, 1))), true);
  assert.equal(page.receive(change(3, row("+", "d", 1, 1))), true);
  assert.equal(page.store.count(3), 2);
  assert.deepEqual(
    page.store.events.map(({ key }) => key),
    ["d"],
  );
});

test("an edit that makes another kind of answer of a query does not end its changes", async () => {
  const page = opened();
  page.receive(status(1));
  page.receive(snapshot(1, row("+", "a", 1, 1)));
  page.receive(
    status(1, { plan: { stream: "ships", around: { at: [0, 0], radius: 1 }, aggregate: { function: "count" } } }),
  );
  assert.equal(page.receive(change(1)), true);
});

test("a new connection subscribes to all that is shown, from where it was", async () => {
  const page = opened();
  page.receive(status(1));
  page.receive({ ...snapshot(1, row("+", "a", 1, 1)), epoch: "e", batch: 7 });
  await page.pass(0);
  page.sent.length = 0;
  page.subscriptions.reset();
  page.receive(hello(SHIPS));
  assert.equal(page.receive(change(1, row("-", "a", 1, 1))), false);
  page.receive(listed(status(1)));
  await page.pass(0);
  assert.deepEqual(
    page.sent.filter(({ type }) => type === "query.subscribe").map(({ held }) => held),
    [{ epoch: "e", batch: 7 }],
  );
});

test("how a query is answered is asked once its answer has begun, so never of one that is not subscribed", async () => {
  const page = opened();
  page.receive(listed(...others(3)));
  page.subscriptions.roles(3, true);
  page.show(3);
  await page.pass(0);
  assert.deepEqual(
    page.sent.map(({ type }) => type).filter((type) => type.startsWith("roles")),
    [],
  );
  page.receive(snapshot(3));
  assert.deepEqual(page.sent.at(-1), { type: "roles.subscribe", query: 3 });
});

const AREA = { lo: [20, 50], hi: [30, 60] };
const seen = (more) => ({ few: false, cards: new Set(), opened: new Set(), events: null, area: AREA, ...more });
const other = (plan, more) => status(7, { mine: false, shown: true, plan: { stream: "ships", ...plan }, ...more });
const FAR = { compare: { lo: [0, 0], hi: [1, 1] } };

test("few queries are all shown, and one's own always", () => {
  assert.equal(isShown(other(FAR), seen({ few: true })), true);
  assert.equal(isShown({ ...other(FAR), mine: true }, seen()), true);
  assert.equal(isShown(other(FAR), seen()), false);
});

test("a query of others is shown by its card, by the list of its events, or by the map", () => {
  for (const more of [{ cards: new Set([7]) }, { opened: new Set([7]) }, { events: 7 }])
    assert.equal(isShown(other(FAR), seen(more)), true);
  const there = { compare: { lo: [29, 59], hi: [40, 70] } };
  assert.equal(isShown(other(there), seen()), true);
  assert.equal(isShown(other(there, { shown: false }), seen()), false);
  assert.equal(isShown(other({ compare: { lo: [380, 50], hi: [381, null] } }), seen()), true);
  assert.equal(isShown(other({ compare: { lo: [null, 61], hi: [null, null] } }), seen()), false);
});

test("what no rectangle bounds may be anywhere on the map", () => {
  const everywhere = [
    { ...FAR, report: "outside" },
    { around: { key: "a", radius: 5 } },
    { kind: "join", join: { layer: "ports" } },
  ];
  for (const plan of everywhere) assert.equal(isShown(other(plan), seen()), true);
});
