// The page's incidents: what is listed, counted and heard, and in which words.

import assert from "node:assert/strict";
import test from "node:test";

import { IncidentPages } from "../../static/js/incidents/pages.js";
import { Incidents, passes, snoozed } from "../../static/js/incidents/store.js";
import {
  changeText,
  headline,
  openText,
  pageTitle,
  standing,
  timesText,
  worst,
} from "../../static/js/incidents/words.js";
import { createStore } from "../../static/js/store/store.js";
import { hello, NOW, SHIPS, status } from "./helpers.mjs";

const ALL = { severity: null, state: null, query: null, assigned: null };
const LATER = new Date(NOW + 3_600_000).toISOString();
const BEFORE = new Date(NOW - 1000).toISOString();

function incident(number, more = {}) {
  return {
    incident: number,
    query: 7,
    name: "Harbour",
    stream: "ships",
    key: `k${number}`,
    partner: null,
    severity: "warning",
    opened: BEFORE,
    closed: null,
    lon: 1,
    lat: 2,
    properties: {},
    acknowledged: null,
    acknowledged_by: null,
    assigned_to: null,
    snoozed_until: null,
    closed_by: null,
    ...more,
  };
}

function listed(incidents, filters = {}) {
  return incidents.listed({ ...ALL, ...filters }, NOW).map((one) => one.incident);
}

test("open incidents come first, then snoozed ones, then closed ones, each the newest first", () => {
  const incidents = new Incidents();
  incidents.list({
    incidents: [5, 4, 3, 2, 1].map((n) =>
      incident(n, { closed: n % 2 ? null : BEFORE, snoozed_until: n === 5 ? LATER : null }),
    ),
    open: {},
  });
  assert.deepEqual(listed(incidents), [3, 1, 5, 4, 2]);
});

test("a snooze ends by itself", () => {
  assert.equal(snoozed(incident(1, { snoozed_until: LATER }), NOW), true);
  assert.equal(snoozed(incident(1, { snoozed_until: LATER }), NOW + 3_600_001), false);
  assert.equal(snoozed(incident(1, { snoozed_until: LATER, closed: BEFORE }), NOW), false);
});

test("open incidents are counted, whether they were listed or opened since", () => {
  const incidents = new Incidents();
  incidents.list({ incidents: [incident(9)], open: { info: 0, warning: 5, critical: 1 } });
  assert.equal(incidents.total, 6);
  incidents.tell([incident(10, { severity: "critical" }), incident(11, { closed: BEFORE })]);
  assert.deepEqual(incidents.open, { info: 0, warning: 5, critical: 2 });
  incidents.tell([incident(10, { severity: "critical", acknowledged: BEFORE }), incident(9, { closed: BEFORE })]);
  assert.deepEqual(incidents.open, { info: 0, warning: 4, critical: 2 });
  assert.equal(incidents.unsure, false);
});

test("of an older incident that is not listed the number of open ones must be asked for", () => {
  const incidents = new Incidents();
  incidents.list({ incidents: [incident(9)], open: { warning: 5 } });
  incidents.tell([incident(3, { closed: BEFORE })]);
  assert.equal(incidents.unsure, true);
  incidents.list({ incidents: [], open: { warning: 4 } });
  assert.deepEqual([incidents.unsure, incidents.total], [false, 4]);
});

test("only incidents that open while the page looks are heard, and each once", () => {
  const incidents = new Incidents();
  incidents.list({ incidents: [incident(9)], open: { warning: 1 } });
  incidents.tell([incident(10), incident(4), incident(11, { closed: BEFORE })]);
  incidents.tell([incident(10, { acknowledged: BEFORE })]);
  assert.deepEqual(
    incidents.takeFresh().map((one) => one.incident),
    [10],
  );
  assert.deepEqual(incidents.takeFresh(), []);
});

test("filters choose by severity, state, query and assignment", () => {
  const taken = incident(1, { assigned_to: "ada", acknowledged: BEFORE, acknowledged_by: "ada" });
  const passing = (filters) => passes(taken, { ...ALL, ...filters }, NOW);
  assert.ok([{}, { severity: "warning" }, { state: "open" }, { query: 7 }, { assigned: "ada" }].every(passing));
  assert.ok(
    ![
      { severity: "info" },
      { state: "new" },
      { state: "closed" },
      { state: "snoozed" },
      { query: 8 },
      { assigned: "bob" },
    ].some(passing),
  );
});

test("the incidents of a query that is gone are gone, and are no longer counted", () => {
  const store = createStore();
  store.apply(hello(SHIPS), NOW);
  store.apply(status(7), NOW);
  store.apply(
    { type: "incident.listed", incidents: [incident(1), incident(2, { query: 8 })], next: null, open: { warning: 2 } },
    NOW,
  );
  let told = 0;
  store.on("incidents", () => told++);
  store.apply(status(7, { status: "cancelled" }), NOW);
  assert.deepEqual([listed(store.incidents), store.incidents.total, told], [[2], 1, 1]);
});

test("what is not on the list any more is forgotten, and what came meanwhile is kept", () => {
  const incidents = new Incidents();
  incidents.list({ incidents: [1, 2, 3].map((n) => incident(n)), open: { warning: 3 } });
  const since = incidents.newest;
  incidents.tell([incident(4)]);
  incidents.retain(new Set([1, 3]), since);
  assert.deepEqual(listed(incidents), [4, 3, 1]);
});

test("the list is asked for page by page, open incidents first", async () => {
  const asked = [];
  const pages = new IncidentPages({
    ask: async ({ type, ...message }) => {
      asked.push(message);
      return {
        incidents: [incident(asked.length)],
        next:
          message.state === "open" && !message.after
            ? 40
            : message.after === 30
              ? null
              : message.state === "closed"
                ? 30
                : null,
      };
    },
    take: () => {},
    onError: assert.fail,
  });
  assert.deepEqual(await pages.reload({ severity: "critical", query: 7, assigned: "ada" }), new Set([1, 2]));
  const filters = { severity: "critical", query: 7, mine: true, limit: 100 };
  assert.deepEqual(asked, [
    { state: "open", ...filters },
    { state: "closed", ...filters },
  ]);
  await pages.showMore();
  await pages.showMore();
  assert.deepEqual(asked.slice(2), [
    { state: "open", ...filters, after: 40 },
    { state: "closed", ...filters, after: 30 },
  ]);
  assert.equal(pages.more, false);
});

test("an incident says what it is about and how it stands", () => {
  assert.equal(headline(incident(1, { properties: { name: "MS Anna" } })), "MS Anna");
  assert.equal(
    headline(incident(1, { key: "a", partner: "b", properties: { since: "", distance: 12 } })),
    "a with b, 12 m",
  );
  assert.equal(
    headline(incident(1, { key: "cargo", partner: "above 20", properties: { value: 23 } })),
    "Harbour, cargo: above 20 (now 23)",
  );
  const taken = incident(1, { acknowledged_by: "ada", assigned_to: "bob", snoozed_until: LATER });
  assert.equal(standing(taken, NOW), "seen by ada \u00b7 for bob \u00b7 silent for 60 min");
  assert.equal(standing(incident(1, { closed: BEFORE, closed_by: "ada" }), NOW), "closed by ada");
  assert.equal(timesText(incident(1)), "2026-05-01 11:59:59 UTC");
});

test("the audit log is said in words", () => {
  const text = (what, user, more = "") => changeText({ what, user, text: more });
  assert.equal(text("opened", null), "Lookout opened it");
  assert.equal(text("closed", null, "moved"), "Lookout closed it: moved out");
  assert.equal(text("closed", null, "ada paused the query"), "Lookout closed it: ada paused the query");
  assert.equal(text("closed", "ada", "by hand"), "ada closed it by hand");
  assert.equal(text("commented", "ada", "on my way"), "ada: on my way");
  assert.equal(text("assigned", "ada", "to bob"), "ada assigned to bob");
});

test("title and tab say how many are open, and the worst of them", () => {
  assert.deepEqual([0, 3, 1200].map(pageTitle), ["Lookout", "(3) Lookout", "(1,200) Lookout"]);
  assert.equal(openText({ info: 0, warning: 2, critical: 1 }), "3 open: 1 critical, 2 warning");
  assert.equal(openText({ info: 0, warning: 0, critical: 0 }), "No open incidents");
  assert.deepEqual(
    [worst({ info: 4, warning: 2, critical: 0 }), worst({ info: 0, warning: 0, critical: 0 })],
    ["warning", null],
  );
});
