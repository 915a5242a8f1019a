import assert from "node:assert/strict";
import { mock, test } from "node:test";

/** Stands for the browser's websocket; the test says what the server does. */
class FakeWebSocket {
  static CONNECTING = 0;
  static OPEN = 1;
  static made = [];
  readyState = FakeWebSocket.CONNECTING;

  constructor(url) {
    this.url = url;
    FakeWebSocket.made.push(this);
  }

  close() {}

  /** Open, and be closed by the server. */
  end(code, reason) {
    this.readyState = FakeWebSocket.OPEN;
    this.onopen();
    this.readyState = 3; // closed
    this.onclose({ code, reason });
  }
}

const GLOBALS = {
  WebSocket: FakeWebSocket,
  window: { addEventListener() {} },
  navigator: { onLine: true },
  location: { protocol: "http:", host: "localhost" },
};
// Newer versions of Node have some of these, which cannot be assigned.
for (const [name, value] of Object.entries(GLOBALS))
  Object.defineProperty(globalThis, name, { value, configurable: true });
mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
const { Socket } = await import("../../static/js/store/socket.js");

/** Open a connection that the server closes; return what the page heard, and how often it has connected so far. */
function closed(path, code, reason) {
  const states = [];
  const socket = new Socket(path, { onState: (...state) => states.push(state), onOpen() {} });
  socket.connect();
  FakeWebSocket.made.at(-1).end(code, reason);
  return [states.at(-1), () => FakeWebSocket.made.filter(({ url }) => url.endsWith(path)).length];
}

test("a page that is one connection too many knows the reason of the server, and tries again after some time", () => {
  const reason = "a user may have at most 32 connections at once; got one more";
  const [state, connections] = closed("/full/", 4414, reason);
  assert.deepEqual(state, ["full", 4414, reason]);
  mock.timers.tick(14_000);
  assert.equal(connections(), 1);
  mock.timers.tick(16_001);
  assert.ok(connections() > 1);
});

test("a page whose connection is lost tries again soon, and one that is signed out does not", () => {
  const [lost, connections] = closed("/lost/", 1006, "");
  assert.equal(lost[0], "reconnecting");
  mock.timers.tick(501);
  assert.equal(connections(), 2);
  const [out, ofSignedOut] = closed("/out/", 4401, "");
  assert.equal(out[0], "signed-out");
  mock.timers.tick(60_000);
  assert.equal(ofSignedOut(), 1);
});

/** Send a request that the server answers by one reply after the other; return what was sent, and how the request ends. */
async function requested(replies, parts) {
  const sent = [];
  const socket = new Socket("/asking/", { onState() {}, onOpen() {}, onMessage() {}, ...parts });
  socket.connect();
  const made = FakeWebSocket.made.at(-1);
  made.readyState = FakeWebSocket.OPEN;
  made.send = (text) => {
    const message = JSON.parse(text);
    sent.push(message);
    const reply = { id: message.id, ...replies[sent.length - 1] };
    queueMicrotask(() => made.onmessage({ data: JSON.stringify(reply) }));
  };
  const ended = await socket.request({ type: "query.register", name: "all" }).then(
    (reply) => reply.type,
    (error) => error.code,
  );
  return [sent, ended];
}

const DOUBTFUL = { type: "error", code: "confirm", message: "there may be no room", estimate: { room: 7 } };

test("a request that has to be confirmed is sent again once the user wants it, with the estimate for the question", async () => {
  const asked = [];
  const onConfirm = async ({ estimate }, { type }) => asked.push([estimate.room, type]) > 0;
  const [sent, ended] = await requested([DOUBTFUL, { type: "query.status" }], { onConfirm });
  assert.deepEqual(asked, [[7, "query.register"]]);
  assert.deepEqual(
    sent.map(({ confirmed }) => confirmed),
    [undefined, true],
  );
  assert.equal(ended, "query.status");
});

test("a request that the user does not confirm ends with the server's error, and any other error asks nobody", async () => {
  const [sent, ended] = await requested([DOUBTFUL], { onConfirm: async () => false });
  assert.deepEqual([sent.length, ended], [1, "confirm"]);
  assert.deepEqual((await requested([DOUBTFUL], {}))[1], "confirm");
  const [, refused] = await requested([{ ...DOUBTFUL, code: "room" }], { onConfirm: () => assert.fail() });
  assert.equal(refused, "room");
});
