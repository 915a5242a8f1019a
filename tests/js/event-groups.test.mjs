import assert from "node:assert/strict";
import { test } from "node:test";

import { EVENTS_OF_GROUP, EventGroups, GROUPS_KEPT, timesText } from "../../static/js/events/event-groups.js";

/** Events from texts such as "+bus 7": the sign, the key, the query. */
function told(...texts) {
  return texts.map((text, i) => {
    const [, sign, key, query] = /^([+-])(\w+) (\d+)$/.exec(text);
    return { number: i + 1, sign: sign === "+" ? 1 : -1, key, query: Number(query), stream: "buses" };
  });
}

const shown = (groups) => groups.map((group) => `${group.newest.key} ${group.newest.query}: ${timesText(group)}`);

test("what one object does in one query is one group, the one with the newest event last", () => {
  const events = told("+a 1", "+b 1", "-a 1", "+a 2", "+a 1", "-a 1");
  const changed = new EventGroups().take(events);
  assert.deepEqual(shown(changed), ["b 1: entered once", "a 2: entered once", "a 1: in and out 2 times"]);
  assert.deepEqual(
    changed[2].events.map(({ number }) => number),
    [6, 5, 3, 1],
  );
});

test("objects that flicker do not bury one that entered once", () => {
  const flicker = Array.from({ length: 3000 }, (_, i) => `${i % 2 ? "-" : "+"}f 1`);
  const [calm, restless] = new EventGroups().take(told("+calm 1", ...flicker));
  assert.deepEqual(shown([calm, restless]), ["calm 1: entered once", "f 1: in and out 1,500 times"]);
  assert.equal(restless.events.length, EVENTS_OF_GROUP);
});

test("only new events are read again, and only their groups have changed", () => {
  const events = told("+a 1", "+b 1", "-a 1");
  const groups = new EventGroups();
  groups.take(events.slice(0, 2));
  assert.deepEqual(shown(groups.take(events)), ["a 1: in and out once"]);
  assert.deepEqual(groups.take(events), []);
});

test("while paused nothing is shown and what passes the filter is counted; then it is shown", () => {
  const events = told("+a 1", "+b 1", "-b 2", "-a 1");
  const groups = new EventGroups();
  groups.take(events.slice(0, 1));
  groups.pause();
  assert.deepEqual([groups.take(events), groups.waiting], [[], 3]);
  groups.choose(1, null); // another filter shows no more than before
  assert.deepEqual([shown(groups.take(events)), groups.waiting, groups.paused], [["a 1: entered once"], 2, true]);
  groups.resume();
  assert.deepEqual(shown(groups.take(events)), ["b 1: entered once", "a 1: in and out once"]);
  assert.deepEqual([groups.waiting, groups.paused], [0, false]);
});

test("groups are made of events of the chosen sign and query alone", () => {
  const events = told("+a 1", "-a 1", "+a 1", "-a 2", "-b 1");
  const groups = new EventGroups();
  const chosen = (query, sign) => {
    groups.choose(query, sign);
    return shown(groups.take(events));
  };
  assert.deepEqual(chosen(null, 1), ["a 1: entered 2 times"]);
  assert.deepEqual(chosen(1, -1), ["a 1: left once", "b 1: left once"]);
  assert.deepEqual(chosen(1, null), ["a 1: entered 2 times, left once", "b 1: left once"]);
});

test("the groups are bounded: the one that is silent longest goes", () => {
  const groups = new EventGroups();
  const changed = groups.take(told(...Array.from({ length: GROUPS_KEPT + 5 }, (_, i) => `+o${i} 1`)));
  assert.deepEqual([changed.length, changed[0].newest.key], [GROUPS_KEPT, "o5"]);
});

test("pairs and thresholds are groups of their own", () => {
  const pairs = [
    ["x", 1],
    ["y", 1],
    ["x", -1],
  ].map(([partnerKey, sign], i) => ({ number: i + 1, query: 1, key: "a", partnerKey, sign }));
  assert.deepEqual(
    new EventGroups().take(pairs).map((group) => timesText(group)),
    ["entered once", "in and out once"],
  );
  const crossings = [1, -1, 1].map((sign, i) => ({
    number: i + 1,
    query: 1,
    key: "",
    group: "cargo",
    threshold: "above 2",
    sign,
  }));
  assert.deepEqual(
    new EventGroups().take(crossings).map((group) => timesText(group)),
    ["crossed 2 times, no longer crossed once"],
  );
});

test("reports of a query that tells all are counted as such", () => {
  const [group] = new EventGroups().take(told("+a 1", "+a 1"));
  assert.equal(timesText(group, true), "reported 2 times");
});
