import assert from "node:assert/strict";
import { test } from "node:test";

import { SketchAsker } from "../../static/js/kinds/sketch/asker.js";
import { sketchText } from "../../static/js/kinds/sketch/words.js";
import { boxOf } from "../../static/js/kinds/plan.js";
import { createStore } from "../../static/js/store/store.js";
import { change, hello, NOW, row, SHIPS, snapshot, status } from "./helpers.mjs";

const PLAN = {
  stream: "ships",
  kind: "sketch",
  ask: [{ question: "mean", features: ["speed_mps"] }],
  area: { lo: [0, 0], hi: [1, 1] },
  once: false,
};
const said = (sign, value) =>
  row(sign, "1 mean speed_mps", null, null, {
    properties: { question: "mean", answers: [{ of: "speed_mps", value, low: value, high: value }] },
  });

class FakeSocket {
  sent = [];
  replies = [];

  send(message) {
    this.sent.push(message);
  }

  request(message) {
    this.sent.push(message);
    return this.replies.shift();
  }
}

function asked(plan = PLAN, reply = null, words = null) {
  const socket = new FakeSocket();
  const echo = (query) => Promise.resolve({ query, plan: { ...plan, once: true }, text: "SELECT ONCE" });
  socket.replies.push(reply ?? echo(41), echo(42), echo(43));
  const clock = { pulse: 1, visible: true, ms: 0, due: null };
  const asker = new SketchAsker(socket, {
    pulse: () => clock.pulse,
    visible: () => clock.visible,
    now: () => clock.ms,
    later: (run, ms) => (clock.due = { run, ms }),
    cancel: () => (clock.due = null),
  });
  const heard = { answers: [], errors: [], texts: [] };
  const question = asker.ask(words ? { text: words } : { plan }, {
    answers: ([answer]) => heard.answers.push(answer.answers[0].value),
    error: (message) => heard.errors.push(message),
    plan: (_, text) => heard.texts.push(text),
  });
  return { socket, asker, question, heard, clock };
}

const settled = () => new Promise(setImmediate);
const typesOf = ({ sent }) => sent.map(({ type }) => type);

test("a question has its answer, ends on the server, and no other message is taken", async () => {
  const { asker, heard, socket } = asked();
  await settled();
  assert.equal(asker.takes(snapshot(41)), true);
  assert.equal(asker.takes(change(7, said("~", 9))), false);
  assert.equal(asker.takes({ type: "query.status", query: 41 }), false);
  assert.equal(asker.takes(change(41, said("+", 5))), true);
  assert.equal(asker.takes(change(41, said("~", 6))), false);
  assert.deepEqual(heard, { answers: [5], errors: [], texts: ["SELECT"] });
  assert.deepEqual(typesOf(socket), ["sketch.ask", "sketch.end"]);
  assert.equal(socket.sent[0].plan.once, true);
});

test("what to know about a question is told with its plan, before the answer", async () => {
  const notes = [];
  const socket = new FakeSocket();
  socket.replies.push(Promise.resolve({ query: 41, plan: PLAN, text: "SELECT", note: "small" }));
  const asker = new SketchAsker(socket, { pulse: () => 1, later: () => null, cancel: () => {} });
  asker.ask({ plan: PLAN }, { answers: () => notes.push("answer"), plan: (_plan, _text, note) => notes.push(note) });
  await settled();
  asker.takes(snapshot(41));
  asker.takes(change(41, said("+", 5)));
  assert.deepEqual(notes, ["small", "answer"]);
});

test("a question is asked again once its stream has new elements, not too soon and only for somebody who looks", async () => {
  const { asker, heard, socket, clock } = asked();
  await settled();
  clock.ms = 4000;
  asker.takes(snapshot(41, said("+", 5)));
  assert.equal(clock.due.ms, 20_000, "five times as long as the answer took");
  clock.due.run();
  assert.deepEqual([clock.due.ms, typesOf(socket).length], [10_000, 2], "nothing new has come");
  clock.pulse = 2;
  clock.visible = false;
  clock.due.run();
  assert.equal(typesOf(socket).length, 2, "nobody looks");
  clock.visible = true;
  clock.due.run();
  await settled();
  asker.takes(snapshot(42, said("+", 6)));
  assert.deepEqual(typesOf(socket), ["sketch.ask", "sketch.end", "sketch.ask", "sketch.end"]);
  assert.deepEqual(heard, { answers: [5, 6], errors: [], texts: ["SELECT"] });
});

test("a question ends where the page ends it, and at once if it is asked once", async () => {
  const { asker, question, socket, clock } = asked();
  await settled();
  question.end();
  question.end();
  assert.deepEqual(socket.sent.slice(1), [{ type: "sketch.end", query: 41 }]);
  assert.equal(asker.takes(change(41, said("~", 6))), false);
  assert.equal(clock.due, null);
  const once = asked({ ...PLAN, once: true });
  await settled();
  once.asker.takes(snapshot(41, said("+", 5)));
  assert.deepEqual(once.socket.sent.at(-1), { type: "sketch.end", query: 41 });
  assert.deepEqual([once.heard.answers, once.clock.due, once.asker.open.size], [[5], null, 0]);
});

test("a question that ended before the server gave it a number ends there too", async () => {
  const { question, socket } = asked();
  question.end();
  await settled();
  assert.deepEqual(socket.sent.at(-1), { type: "sketch.end", query: 41 });
});

test("open questions are asked again on a new connection", async () => {
  const { asker, socket, heard } = asked();
  await settled();
  asker.reset();
  await settled();
  assert.deepEqual(typesOf(socket), ["sketch.ask", "sketch.ask"]);
  assert.equal(asker.takes(snapshot(41, said("+", 5))), false);
  assert.equal(asker.takes(snapshot(42, said("+", 7))), true);
  assert.deepEqual(heard.answers, [7]);
});

test("a text that says once is asked once", async () => {
  const { asker, socket, clock } = asked(PLAN, null, "SELECT ONCE");
  await settled();
  asker.takes(snapshot(41, said("+", 5)));
  assert.deepEqual([socket.sent[0].text, clock.due, asker.open.size], ["SELECT ONCE", null, 0]);
});

test("an engine that does not answer is told of, and its answer is still taken", async () => {
  const { asker, heard, clock } = asked();
  await settled();
  clock.due.run();
  assert.match(heard.errors[0], /has not answered yet/);
  asker.takes(snapshot(41, said("+", 5)));
  assert.deepEqual(heard.answers, [5]);
});

test("what the server refuses is told, and the question is over", async () => {
  const { asker, heard } = asked(PLAN, Promise.reject(new Error("the stream ships must be sketched")));
  await settled();
  assert.deepEqual(heard.errors, ["the stream ships must be sketched"]);
  assert.equal(asker.open.size, 0);
});

test("a saved query of a sketch keeps documents, and puts no objects on the map", () => {
  const store = createStore();
  for (const message of [hello(SHIPS), status(9, { plan: PLAN }), snapshot(9, said("+", 5)), change(9, said("~", 6))])
    store.apply(message, NOW);
  assert.equal(store.sketched.get(9)[0].answers[0].value, 6);
  assert.equal(store.objects.live, 0);
  assert.equal(store.answered(9), true);
  assert.ok(Number.isNaN(store.streams.get("ships").newestMs), "an answer's time is not the time of an element");
  store.apply(status(9, { plan: { ...PLAN, ask: [{ question: "count" }] } }), NOW);
  assert.equal(store.sketched.has(9), false, "answers to other questions are forgotten");
});

test("a query of a sketch is told in words", () => {
  assert.equal(sketchText(PLAN), "mean of speed in an area");
  const plan = {
    ask: [
      { question: "select", features: ["temp"] },
      { question: "series", features: ["temp"], every: "month" },
      { question: "count" },
    ],
    polygon: [
      [0, 0],
      [1, 0],
      [0, 1],
    ],
    time: {
      ranges: [{ from: "2013-03-01T00:00:00Z", to: "2014-03-01T06:00:00Z" }],
      daily: { from: "14:00", to: "16:00" },
    },
  };
  assert.equal(
    sketchText(plan),
    "statistics of temp, course of temp by month, count of elements in a polygon, from 2013-03-01 until 2014-03-01 06:00, from 14:00 to 16:00 daily",
  );
  assert.equal(sketchText({ ...PLAN, time: { last_s: 7200 } }), "mean of speed in an area, in the last 2 h");
});

test("a polygon lies in a box, to which the map can fly", () => {
  assert.deepEqual(
    boxOf({
      polygon: [
        [3, 1],
        [5, 2],
        [4, 7],
      ],
    }),
    { lo: [3, 1], hi: [5, 7] },
  );
});
