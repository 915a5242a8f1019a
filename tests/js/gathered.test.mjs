import assert from "node:assert/strict";
import { test } from "node:test";

import { Gathered } from "../../static/js/store/gathered.js";

function gathered() {
  const timers = [];
  const lists = [];
  const items = new Gathered((list) => lists.push(list), { later: (run) => timers.push(run) });
  return { items, lists, pass: () => timers.splice(0).forEach((run) => run()) };
}

test("a greeting of 1,000 queries becomes one message, far below the rate that the server carries out", () => {
  const { items, lists, pass } = gathered();
  for (let query = 1; query <= 1000; query++) items.add(query);
  pass();
  assert.equal(lists.length, 1);
  assert.deepEqual(
    lists[0],
    Array.from({ length: 1000 }, (_, i) => i + 1),
  );
});

test("no list is longer than the server allows, and none is empty", () => {
  const { items, lists, pass } = gathered();
  for (let query = 0; query < 2001; query++) items.add(query);
  pass();
  assert.deepEqual(
    lists.map((list) => list.length),
    [1000, 1000, 1],
  );
  pass();
  items.add(7);
  items.clear(); // the line went down: the next greeting tells of the query again
  pass();
  assert.equal(lists.length, 3);
});

test("what comes after a list was passed on is in the next one", () => {
  const { items, lists, pass } = gathered();
  items.add(1);
  pass();
  items.add(2);
  pass();
  assert.deepEqual(lists, [[1], [2]]);
});

test("the page's own timer is called as browsers want it: not as a method of something else", async (t) => {
  const owners = [];
  t.mock.method(globalThis, "setTimeout", function (run) {
    owners.push(this); // eslint-disable-line no-invalid-this -- this is what the test is about
    run();
  });
  const lists = [];
  new Gathered((list) => lists.push(list)).add(1);
  assert.deepEqual(lists, [[1]]);
  assert.ok(owners.every((owner) => owner === undefined || owner === globalThis));
});
