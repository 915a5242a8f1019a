// The past in place of the live answers: what a replay shows, and that live is exact as soon as it ends.

import assert from "node:assert/strict";
import { test } from "node:test";

import { columnsOf } from "../../static/js/store/frames.js";
import { replayOf, replayText } from "../../static/js/replay/address.js";
import { AnswerTrack, messagesOf } from "../../static/js/replay/answer-track.js";
import { ReplayClock } from "../../static/js/replay/clock.js";
import { Player } from "../../static/js/replay/player.js";
import { Stage } from "../../static/js/replay/stage.js";
import { eventAt, storedParts, ticksOf } from "../../static/js/replay/ticks.js";
import { createStore } from "../../static/js/store/store.js";
import { change, hello, NOW, randomOf, row, SHIPS, snapshot, status } from "./helpers.mjs";

const BUSES = { name: "buses", title: "Buses", icon: "bus", enabled: true };
const VIEW = { type: "view.status", views: { ships: 2 ** 40 } };

/** What a store shows: objects with their places, colours and answers, and the events. */
function picture(store) {
  const { objects } = store;
  const slots = Array.from({ length: objects.size }, (_, slot) => slot).filter((slot) => objects.alive[slot]);
  const shown = slots.map((slot) => [
    objects.streams[slot],
    objects.keys[slot],
    objects.lon[slot],
    objects.colour[slot],
    [...objects.queries[slot]].sort(),
  ]);
  const events = store.events.map(({ number, query, key, sign, reason }) => [number, query, key, sign, reason]);
  const counts = [...store.queries.keys()].map((query) => [query, store.count(query), store.heldOf(query)]);
  return {
    shown: shown.sort((a, b) => (a[1] < b[1] ? -1 : 1)),
    events,
    counts,
    unread: store.unread,
    views: [...store.views],
  };
}

const BEFORE = [
  hello(SHIPS, BUSES),
  status(1),
  status(2),
  VIEW,
  snapshot(2 ** 40, row("+", "anna", 1, 1), row("+", "berta", 2, 2)),
  snapshot(1, row("+", "anna", 1, 1)),
  snapshot(2),
  change(1, row("+", "berta", 2, 2)),
];
const MEANWHILE = [
  change(2 ** 40, row("~", "anna", 1.5, 1.5), row("+", "carla", 3, 3)),
  change(1, row("-", "anna", 1.5, 1.5)),
  status(3),
  snapshot(3, row("+", "carla", 3, 3)),
  { ...status(2), status: "cancelled" },
  { type: "view.status", views: { ships: 2 ** 40, buses: 2 ** 40 + 1 } },
  snapshot(2 ** 40 + 1, row("+", "bus 7", 5, 5)),
  { type: "stream.status", streams: {} },
];
const AFTER = [change(3, row("-", "carla", 4, 3)), change(2 ** 40, row("~", "berta", 2.5, 2))];

test("live is exact as soon as a replay ends, as if there had been none", () => {
  for (let entered = 2; entered <= BEFORE.length; entered++) {
    const [one, plain] = [createStore(), createStore()];
    const stage = new Stage(one);
    const live = [...BEFORE, ...MEANWHILE];
    for (const message of live) plain.apply(structuredClone(message), NOW);
    live.forEach((message, i) => {
      if (i === entered) stage.enter();
      stage.apply(structuredClone(message), NOW);
      if (i < entered) return;
      one.views = new Map([[-1, "ships"]]);
      one.apply({ type: "answer.snapshot", query: -1, rows: columnsOf([row("+", "ghost", 9, 9)]) }, NOW);
      one.apply({ ...snapshot(1, row("+", "ghost", 9, 9)), query: 1 }, NOW);
      assert.deepEqual([...one.objects.byStream.get("ships").keys()], ["ghost"], "nothing live is drawn");
    });
    stage.leave();
    assert.deepEqual(picture(one), picture(plain), `entered before message ${entered}`);
    for (const message of AFTER) {
      stage.apply(structuredClone(message), NOW);
      plain.apply(structuredClone(message), NOW);
    }
    assert.deepEqual(picture(one), picture(plain));
  }
});

test("what was hidden during a replay stays hidden, and its objects are coloured so", () => {
  const store = createStore();
  const stage = new Stage(store);
  for (const message of BEFORE) stage.apply(message, NOW);
  stage.enter();
  store.show(1, false);
  stage.leave();
  assert.equal(store.objects.colour[store.objects.slot("ships", "anna")], -1);
});

/** Random ways of some objects, as `[atMs, key, lon]`. */
function ways() {
  const random = randomOf(5);
  return Array.from({ length: 300 }, (_, i) => [1000 + i * 150, "abcdef"[random(6)], random(20)]);
}

const LIFE_MS = 6000;
const inside = (lon) => lon >= 5 && lon <= 15;

function shownAt(told, ms) {
  const last = new Map(told.filter(([at]) => at <= ms).map(([at, key, lon]) => [key, [at, lon]]));
  return [...last]
    .filter(([, [at, lon]]) => inside(lon) && ms - at <= LIFE_MS)
    .map(([key, [, lon]]) => `${key} at ${lon}`)
    .sort();
}

/** Answers questions for pages of elements as the server does, at most some rows in each. */
function server(told, mostRows) {
  const asked = [];
  return {
    asked,
    elements(stream, area, { fromMs, toMs }, { scene, stepMs }) {
      asked.push([fromMs, toMs, scene, stepMs]);
      const known = new Map(told.filter(([at]) => at <= fromMs).map((one) => [one[1], one]));
      const begin = scene
        ? [...known.values()].filter(([at, , lon]) => inside(lon) && fromMs - at <= LIFE_MS).sort((a, b) => a[0] - b[0])
        : [];
      const changes = [];
      for (const one of told.filter(([at]) => at > fromMs && at <= toMs)) {
        const was = known.get(one[1]);
        if (inside(one[2])) changes.push([...one, 1]);
        else if (was && inside(was[2])) changes.push([...one, -1]);
        known.set(one[1], one);
      }
      const untilMs = changes.length > mostRows ? changes[mostRows][0] - 0.001 : toMs;
      const rows = [...begin.map((one) => [...one, 1]), ...changes.slice(0, mostRows)];
      const columns = columnsOf(
        rows.map(([at, key, lon, sign]) => ({ ...row(sign > 0 ? "+" : "-", key, lon, 0), time_us: at * 1000 })),
      );
      columns.atMs = Float64Array.from(rows, ([at]) => at);
      return Promise.resolve({ fromMs, untilMs, scene: begin.length, life_us: LIFE_MS * 1000, rows: columns });
    },
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

async function playing(told, { mostRows = 40, queries = [], ask = null, askScene = null } = {}) {
  const store = createStore();
  const stage = new Stage(store);
  stage.apply(hello(SHIPS), NOW);
  stage.enter();
  const clock = new ReplayClock({ fromMs: 0, toMs: 46_000, atMs: 3000 });
  const api = server(told, mostRows);
  const [time, errors] = [{ ms: 0 }, []];
  const answers = new AnswerTrack({
    clock,
    queries: () => queries,
    revisions: () => [],
    ask,
    askScene,
    onTold() {},
    onRefused() {},
    onError: (text) => errors.push(text),
  });
  const player = new Player({
    store,
    stage,
    clock,
    api,
    answers,
    bounds: () => ({ west: 5, south: -1, east: 15, north: 1 }),
    streams: () => ["ships"],
    lifeMs: () => LIFE_MS,
    now: () => time.ms,
    onError: (text) => errors.push(text),
    onJump: () => {},
  });
  player.follow();
  const wait = async () => {
    for (let i = 0; i < 60 && (player.waiting || Number.isNaN(player.shownMs)); i++) {
      await settled();
      player.tick();
    }
  };
  await wait();
  const scene = () =>
    [...(store.objects.byStream.get("ships") ?? [])]
      .map(([key, slot]) => `${key} at ${store.objects.lon[slot]}`)
      .sort();
  return { player, clock, api, time, errors, scene, wait, store, stage };
}

test("a replay shows at each time what was known then, while it plays at any speed", async () => {
  const told = ways();
  for (const speed of [1, 60, 600]) {
    const { player, clock, time, scene, wait, errors } = await playing(told);
    clock.speed = speed;
    clock.play();
    player.tick();
    while (clock.playing) {
      time.ms += Math.max(1, 700 / speed);
      player.tick();
      await settled();
      if (player.waiting) await wait();
      assert.deepEqual(scene(), shownAt(told, player.shownMs), `at ${player.shownMs}, ${speed}x`);
    }
    assert.equal(player.shownMs, 46_000);
    assert.deepEqual(errors, []);
  }
});

test("a jump shows the scene of its time, before or after what was read", async () => {
  const told = ways();
  const { player, scene, wait, api } = await playing(told);
  for (const ms of [40_000, 3000, 20_000, 20_100, 19_000, 46_000, 0]) {
    player.seek(ms);
    await wait();
    assert.equal(player.shownMs, ms);
    assert.deepEqual(scene(), shownAt(told, ms), `at ${ms}`);
  }
  const asked = api.asked.length;
  player.seek(500);
  assert.deepEqual([api.asked.length, player.waiting], [asked, false], "what was read is not asked for again");
});

test("objects are shown at once, and answers as soon as they are there", async () => {
  const told = ways();
  let tell;
  const ask = () => new Promise((resolve) => (tell = resolve));
  const { player, scene, store, clock } = await playing(told, { queries: [1], ask });
  store.apply(status(1), NOW);
  assert.deepEqual([scene(), store.answered(1), player.waiting], [shownAt(told, 3000), false, true]);
  clock.play();
  player.tick();
  assert.equal(clock.atMs, 3000, "the clock waits for the answers");
  tell(page(0, 46_000, true, [0, 1, "+", "a"]));
  await settled();
  player.tick();
  assert.deepEqual([store.count(1), player.waiting], [1, false]);
});

test("answers that follow from where objects are are shown while the others are computed", async () => {
  const told = ways();
  let [tell, tellScene] = [null, null];
  const ask = () => new Promise((resolve) => (tell = resolve));
  const askScene = () => new Promise((resolve) => (tellScene = resolve));
  const { player, store, stage } = await playing(told, { queries: [1, 2], ask, askScene });
  for (const number of [1, 2]) store.apply(status(number), NOW);
  assert.deepEqual([...store.awaited], [1, 2]);
  tellScene({ ...page(3000, 3000, true, [3000, 1, "+", "a"]), queries: [1] });
  await settled();
  player.tick();
  assert.deepEqual([store.count(1), store.answered(2), [...store.awaited]], [1, false, [2]]);
  assert.deepEqual(player.state(), {
    objects: false,
    answers: { queries: 2, missing: 1, untilMs: NaN, share: NaN },
  });
  tell(page(0, 46_000, true, [0, 2, "+", "b"]));
  await settled();
  player.tick();
  assert.deepEqual([store.count(1), store.count(2), [...store.awaited]], [0, 1, []]);
  stage.leave();
  assert.equal(store.awaited.size, 0);
});

test("fast replays ask for fewer reports, and a pause for all of them again", async () => {
  const { player, clock, api, wait } = await playing(ways());
  const steps = () => api.asked.map(([, , , stepMs]) => stepMs);
  assert.deepEqual([...new Set(steps())], [0]);
  clock.speed = 60;
  player.pace();
  assert.equal(steps().at(-1), 0, "while it is paused");
  clock.play();
  player.pace();
  await wait();
  assert.equal(steps().at(-1), 3000);
  clock.speed = 3600;
  player.pace();
  await wait();
  assert.equal(steps().at(-1), LIFE_MS / 2);
  clock.pause();
  player.pace();
  await wait();
  assert.equal(steps().at(-1), 0);
});

function page(fromMs, untilMs, begins, ...told) {
  const rows = columnsOf(told.map(([, , sign, key]) => row(sign, key, 1, 1)));
  rows.atMs = Float64Array.from(told, ([at]) => at);
  rows.queries = told.map(([, query]) => query);
  return { fromMs, untilMs, begins, queries: [1, 2], refused: {}, rows };
}

test("a page of answers is a snapshot of each query, then changes at their times", () => {
  const told = messagesOf(
    page(
      1000,
      5000,
      true,
      [1000, 2, "+", "a"],
      [1000, 2, "+", "b"],
      [2000, 1, "+", "a"],
      [2000, 2, "-", "a"],
      [3000, 2, "+", "a"],
    ),
  );
  const said = told.map(([at, { type, query, rows }]) => [at, type, query, rows.keys.join("")]);
  assert.deepEqual(said, [
    [1000, "answer.snapshot", 1, ""],
    [1000, "answer.snapshot", 2, "ab"],
    [2000, "answer.change", 1, "a"],
    [2000, "answer.change", 2, "a"],
    [3000, "answer.change", 2, "a"],
  ]);
});

test("pages of answers follow each other, and a way back tells all from the beginning", async () => {
  const clock = new ReplayClock({ fromMs: 0, toMs: 10_000, atMs: 2000 });
  const pages = [
    page(0, 3000, true, [0, 1, "+", "a"], [2000, 1, "-", "a"]),
    page(3000, 10_000, false, [4000, 1, "+", "b"], [9000, 1, "-", "b"]),
  ];
  const asked = [];
  const revisions = [1, 1];
  const track = new AnswerTrack({
    clock,
    queries: () => [1, 2],
    revisions: () => revisions,
    ask: (queries, span) => {
      asked.push([queries, span.fromMs]);
      return Promise.resolve(pages[asked.length - 1]);
    },
    onTold: () => {},
    onRefused: () => {},
    onError: assert.fail,
  });
  assert.equal(track.follow(), true);
  assert.equal(track.knows(2000), false);
  track.readAhead(2000, 10_000);
  await settled();
  assert.deepEqual([track.knows(2000), track.knows(3001)], [true, false]);
  const keys = (messages) => messages.map(({ rows }) => `${rows.sign.join()}${rows.keys.join()}`);
  assert.deepEqual(keys(track.seek(1000)), ["1a", ""]);
  assert.deepEqual(keys(track.advance(2500)), ["-1a"]);
  track.readAhead(2500, 10_000);
  await settled();
  assert.deepEqual(keys(track.advance(9000)), ["1b", "-1b"]);
  assert.deepEqual(keys(track.seek(4000)), ["1a", "", "-1a", "1b"]);
  assert.deepEqual(asked, [
    [[1, 2], 0],
    [[1, 2], 3000],
  ]);
  assert.equal(track.follow(), false);
  revisions[1] = 2;
  assert.deepEqual([track.follow(), track.knows(2000)], [true, false], "a query was edited");
  track.on = false;
  track.follow();
  assert.deepEqual([track.knows(5e9), track.seek(4000)], [true, []]);
});

test("pages of answers that were told are forgotten if there are too many, and a jump asks anew", async () => {
  const clock = new ReplayClock({ fromMs: 0, toMs: 90_000, atMs: 0 });
  const asked = [];
  const ask = (queries, { fromMs }) => {
    asked.push(fromMs);
    return Promise.resolve(page(fromMs, fromMs + 1000, asked.length === 1, [fromMs + 500, 1, "+", `a${fromMs}`]));
  };
  const track = new AnswerTrack({
    clock,
    queries: () => [1],
    revisions: () => [1],
    ask,
    onTold: () => {},
    onRefused: () => {},
    onError: assert.fail,
  });
  track.follow();
  track.readAhead(0, 90_000);
  await settled();
  assert.equal(track.seek(600).length, 3);
  for (let ms = 1600; ms < 6000; ms += 1000) {
    track.readAhead(ms - 1000, 90_000, false, 2);
    await settled();
    assert.equal(track.advance(ms).length, 1, `at ${ms}`);
  }
  assert.equal(track.knows(600), false);
  assert.equal(track.knows(5600), true);
  track.readAhead(5600, 90_000, true, 2);
  assert.deepEqual([asked.at(-1), track.knows(5600)], [0, false]);
});

test("the time and the speed of a replay are a text of the address", () => {
  const atMs = Date.UTC(2026, 10, 25, 14, 3, 22, 700);
  assert.equal(replayText({ atMs, speed: 60 }), "2026-11-25T14:03:22Z,60");
  assert.deepEqual(replayOf("2026-11-25T14:03:22Z,60"), { atMs: atMs - 700, speed: 60 });
  assert.equal(replayText({ atMs, speed: 1 }), "2026-11-25T14:03:22Z");
  assert.equal(replayText(null), null);
  for (const wrong of ["", "yesterday"]) assert.equal(replayOf(wrong), null);
  assert.equal(replayOf("2026-11-25T14:03:22Z,7").speed, 1);
});

test("ticks lie where their events are, and the nearest one is found", () => {
  const span = { fromMs: 0, toMs: 1000 };
  const event = (timeMs, sign, colour = 1) => ({ timeMs, sign, colour });
  const events = [event(0, 1), event(500, 1), event(500.1, 1), event(500, -1), event(990, 1, 3), event(5000, 1)];
  assert.deepEqual(ticksOf(events, span, 100), [
    { x: 0, colour: 1, entered: true },
    { x: 50, colour: 1, entered: true },
    { x: 50, colour: 1, entered: false },
    { x: 99, colour: 3, entered: true },
  ]);
  assert.equal(eventAt(events, 97, span, 100, 5).timeMs, 990);
  assert.equal(eventAt(events, 80, span, 100, 5), undefined);
  const streams = [
    { first_us: null, last_us: null },
    { first_us: 250_000, last_us: 2_000_000 },
    { first_us: 3e6, last_us: 4e6 },
  ];
  assert.deepEqual(storedParts(streams, span), [[0.25, 1]]);
});
