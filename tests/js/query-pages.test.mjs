import assert from "node:assert/strict";
import { test } from "node:test";

import { PAGE, QueryPages } from "../../static/js/queries/query-pages.js";
import { createStore } from "../../static/js/store/store.js";
import { hello, NOW, SHIPS, status } from "./helpers.mjs";

const before = (a, b) => (a.mine === b.mine ? a.query < b.query : a.mine);

/** A server with queries, and a page that is connected to it. */
class Server {
  constructor(own, others) {
    this.queries = [...own.map((n) => status(n)), ...others.map((n) => status(n, { mine: false, shared: true }))];
    this.store = createStore();
    this.asked = [];
    this.errors = [];
    this.timers = [];
    this.changes = 0;
    this.pages = new QueryPages({
      store: this.store,
      ask: (message) => this.#answer(message),
      onError: (error) => this.errors.push(error.message),
      onChange: () => this.changes++,
      later: (run) => this.timers.push(run),
    });
    this.store.apply(hello(SHIPS), NOW);
  }

  async #answer({ after, limit, search = "" }) {
    this.asked.push({ after, limit, search });
    await null;
    if (this.fault) throw new Error(this.fault);
    const all = this.queries.filter(({ name }) => name.includes(search));
    const rest = all.filter((query) => !after || before(after, query));
    const page = rest.slice(0, limit);
    const { mine, query } = page.at(-1) ?? {};
    const listed = {
      type: "query.listed",
      queries: page,
      total: all.length,
      next: rest.length > limit ? { mine, query } : null,
    };
    this.store.apply(listed, NOW);
    return listed;
  }

  async open() {
    await this.pages.reload();
    return this;
  }

  get listed() {
    return this.pages.listed().map(({ query }) => query);
  }
}

const to = (n, from = 1) => Array.from({ length: n - from + 1 }, (_, i) => from + i);

test("a small list comes whole with one request", async () => {
  const { pages, asked, ...rest } = await new Server([5, 7], [1, 2, 9]).open();
  assert.deepEqual(
    pages.listed().map(({ query }) => query),
    [1, 2, 5, 7, 9],
  );
  assert.deepEqual([pages.few, pages.more, pages.count(), asked.length, rest.errors], [true, false, 5, 1, []]);
});

test("as soon as a list is longer than a page, the user's own queries come first", async () => {
  const server = await new Server([190, 220], to(97)).open();
  assert.deepEqual(server.listed.slice(0, 3), [1, 2, 3]);
  for (const n of [230, 231]) server.store.apply(status(n, { mine: n === 230 }), NOW);
  assert.deepEqual(server.listed.slice(0, 5), [190, 220, 230, 1, 2]);
  assert.deepEqual([server.listed.length, server.pages.more], [101, false]);
});

test("of many queries of others the first page comes, then one more at each demand, until all are there", async () => {
  const server = await new Server([], to(250)).open();
  const { pages } = server;
  assert.deepEqual([server.listed.length, pages.few, pages.more, pages.count()], [PAGE, false, true, 250]);
  await pages.showMore();
  assert.deepEqual(server.listed, to(200));
  await pages.showMore();
  assert.deepEqual([server.listed, pages.more, pages.few], [to(250), false, false]);
});

test("all of the user's own queries come without being asked for, since they raise events", async () => {
  const server = await new Server(to(1250, 1001), to(300)).open();
  assert.deepEqual(server.listed, [...to(1250, 1001), ...to(50)]);
  assert.equal(server.pages.count(), 550);
});

test("a search is asked of the server; its end shows the list as it was, and forgets what only the search found", async () => {
  const server = await new Server([], to(300)).open();
  const { pages, store } = server;
  await pages.find(" 29 ");
  assert.deepEqual(server.asked.at(-1).search, "29");
  assert.deepEqual(server.listed, [29, 129, 229, ...to(299, 290)]);
  assert.deepEqual([pages.found.total, pages.count(), pages.more], [13, 300, false]);
  await pages.find("");
  assert.deepEqual([server.listed, store.queries.size], [to(100), 100]);
});

test("a search with many results has pages of its own", async () => {
  const server = await new Server([], to(300)).open();
  await server.pages.find("Query");
  await server.pages.showMore();
  assert.deepEqual([server.listed, server.pages.more], [to(200), true]);
  await server.pages.find("");
  assert.deepEqual(server.listed, to(100));
});

test("of two searches the later one counts, however late the first is answered", async () => {
  const server = await new Server([], to(300)).open();
  await Promise.all([server.pages.find("1"), server.pages.find("300")]);
  assert.deepEqual(server.listed, [300]);
  await Promise.all([server.pages.find("1"), server.pages.find("")]);
  assert.deepEqual(server.listed, to(100));
});

test("a new connection lists as far as before, with the search, and forgets what has ended", async () => {
  const server = await new Server([], to(300)).open();
  const { pages } = server;
  await pages.showMore();
  await pages.find("25");
  server.queries = server.queries.filter(({ query }) => ![3, 25].includes(query));
  await pages.reload();
  assert.deepEqual(server.listed, [125, 225, ...to(259, 250)]);
  await pages.find("");
  assert.deepEqual(
    server.listed,
    to(202).filter((n) => ![3, 25].includes(n)),
  );
  assert.equal(pages.count(), 298);
});

test("a list that has grown by far while the connection was down is not loaded whole", async () => {
  const server = await new Server([], to(90)).open();
  server.queries = new Server([], to(5000)).queries;
  await server.pages.reload();
  assert.deepEqual([server.listed, server.pages.count(), server.pages.few], [to(100), 5000, false]);
});

test("a page that does not come is told of and can be asked for again; nothing is forgotten", async () => {
  const server = await new Server([], to(300)).open();
  const { pages } = server;
  server.fault = "the database has gone";
  await pages.showMore();
  await pages.reload();
  assert.deepEqual([server.errors.length, pages.failed, pages.loading, server.listed], [2, true, false, to(100)]);
  server.fault = null;
  await pages.showMore();
  assert.deepEqual([pages.failed, server.listed], [false, to(200)]);
  const other = new Server([1], []);
  other.fault = "the database has gone";
  await other.open();
  assert.deepEqual([other.listed, other.pages.more, other.pages.failed], [[], true, true]);
  other.fault = null;
  await other.pages.showMore();
  assert.deepEqual([other.listed, other.pages.failed], [[1], false]);
});

test("while the list is not whole it is counted again after changes, many changes once", async () => {
  const server = await new Server([], to(300)).open();
  const { pages, timers } = server;
  await pages.find("30");
  server.queries.push(status(3030, { mine: false }));
  for (let i = 0; i < 50; i++) pages.follow({ type: "queries.changed" });
  assert.equal(timers.length, 1);
  await timers.pop()();
  assert.deepEqual([pages.count(), pages.found.total, server.listed.at(-1)], [301, 5, 3030]);
  const small = await new Server([], to(3)).open();
  small.pages.follow({ type: "query.status", status: "pending" });
  assert.equal(small.timers.length, 0);
});

test("of an order of positions, own queries come first and the end is last", async () => {
  const { upTo } = await import("../../static/js/queries/query-pages.js");
  const order = [
    { mine: true, query: 1 },
    { mine: true, query: 9 },
    { mine: false, query: 2 },
    { mine: false, query: 3 },
    null,
  ];
  order.forEach((a, i) => order.forEach((b, j) => assert.equal(upTo(a, b), i <= j)));
});
