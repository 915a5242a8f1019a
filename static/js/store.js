// The state of the page, and how each message of the server changes it. Pure: no DOM, no socket, no clock.

import { Answer } from "./answers.js";
import { Figures } from "./figures.js";
import { parsed, title } from "./format.js";
import { PLACED } from "./frames.js";
import { KINDS, NO_COLOUR, Objects, kindOf } from "./objects.js";

export const COLOURS = 8;
export const LAYER_COLOURS = 6;
export const EVENTS_KEPT = 2000;
export const LIVE_STATUSES = ["pending", "running", "paused", "failed", "waiting"];

// An event time further ahead of the server's clock than this is an error of the sender. The stream's clock ignores it,
// so that it does not make other objects look old.
const FUTURE_MS = 60_000;
// The reasons with which the server sends the place of a query whose focal object is lost.
const LOST = ["expired", "dropped"];
// The map draws an object faded that has not reported for this long, by the clock of its own stream.
const STALE_MS = { ship: 360_000, aircraft: 60_000, bus: 180_000, other: 300_000 };

/** @param {object} looks how the layers were shown before, as `looksOf` returns it; null if that is not known */
export function createStore(looks = {}) {
  return new Store(looks);
}

/** Return how the layers are shown, to remember it: `{shown, byCount}` by name, of the layers for which it was ever changed. */
export function looksOf(store) {
  return Object.fromEntries(store.looks);
}

/** Group queries by the last batch of their answers that the page holds: `[[{epoch, batch} or null, queries], ...]`. */
export function heldAlike(store, queries) {
  const alike = new Map();
  for (const query of queries) {
    const held = store.heldOf(query);
    const name = JSON.stringify(held);
    if (!alike.has(name)) alike.set(name, [held, []]);
    alike.get(name)[1].push(query);
  }
  return [...alike.values()];
}

class Store {
  constructor(looks) {
    this.objects = new Objects();
    this.streams = new Map(); // name -> {name, title, icon, enabled, kind, health, newestMs, heardMs}
    this.queries = new Map(); // number -> the last query.status, with {colour, shown}
    this.layers = new Map(); // name -> the last layer.status, with {colour, shown, byCount, truncated}
    this.looks = new Map(Object.entries(looks ?? {})); // name -> {shown, byCount}, also of layers that are not listed yet
    this.toldLayers = new Set(); // layers with a status since the page last asked for the list, which says nothing newer about them
    this.views = new Map(); // number -> stream
    this.answers = new Map(); // number -> Answer, of views and of queries
    this.figures = new Map(); // number -> Figures, of aggregates
    this.held = new Map(); // number -> {epoch, batch}: the last batch of a saved query's answer that the page holds
    this.going = new Set(); // saved queries whose answers have begun on this connection
    this.roles = new Map(); // number -> the last query.roles, with counts since the page was opened
    this.sentBefore = new Map(); // number -> region -> its entry in `roles` when the connection was made; its counts go on from there
    this.places = new Map(); // number -> where a query is, {stream, key, name, lon, lat, timeMs, reach, lost}
    this.events = []; // newest last
    this.eventsSeen = 0; // events ever recorded
    this.unread = 0;
    this.user = null;
    this.space = null; // name of the built-in space; the badge shows the state of its engine
    this.dimensions = []; // names of the dimensions of the built-in space
    this.mapped = null; // names of the geographic spaces, which the map can show; null: all spaces
    this.engine = { alive: null, lagMs: NaN, elementsPerS: NaN, atMs: NaN };
    this.link = { state: "connecting", sinceMs: NaN };
    this.dataMs = NaN; // when the newest answer came
    this.lagMs = NaN;
    this.resyncMs = NaN;
    this.clockOffsetMs = 0; // the server's clock minus this computer's
    this.restated = null; // from `hello` to the first `view.status`: the queries whose status has come; otherwise null
    this.selected = null; // {stream, key}
    this.selectedFeature = null; // {layer, key, properties}
    this.listeners = new Map();
  }

  /**
   * Call `listener` after every change of a topic: objects, queries, places, figures, roles, pairs, streams, layers, events,
   * status, selection.
   */
  on(topics, listener) {
    for (const topic of topics.split(" ")) {
      if (!this.listeners.has(topic)) this.listeners.set(topic, new Set());
      this.listeners.get(topic).add(listener);
    }
  }

  emit(...topics) {
    for (const listener of new Set(topics.flatMap((topic) => [...(this.listeners.get(topic) ?? [])]))) listener();
  }

  /** Apply a message of the server that arrived at `nowMs`; unknown types change nothing. */
  apply(message, nowMs) {
    const reduce = REDUCERS[message.type];
    if (reduce) this.emit(...reduce(this, message, nowMs));
  }

  setLink(state, nowMs) {
    if (this.link.state === state) return;
    this.link = { state, sinceMs: nowMs };
    // What came over the previous connection says nothing of the engine's present state.
    if (state === "open") this.engine = { ...this.engine, alive: null, atMs: NaN };
    this.emit("status");
  }

  /** Return whether the map shows the objects of a space. */
  maps(space) {
    return space === undefined || this.mapped === null || this.mapped.has(space);
  }

  select(stream, key) {
    this.selected = stream === null ? null : { stream, key };
    this.selectedFeature = null;
    this.emit("selection");
  }

  /** Select a feature `{layer, key, properties}` of a layer, in place of an object. */
  selectFeature(feature) {
    this.selected = null;
    this.selectedFeature = feature;
    this.emit("selection");
  }

  selectedSlot() {
    return this.selected ? this.objects.slot(this.selected.stream, this.selected.key) : undefined;
  }

  /** Show or hide a query's rectangle and its colour on the map. */
  show(query, shown) {
    this.queries.get(query).shown = shown;
    for (const slot of this.answers.get(query)?.slots.keys() ?? []) recolour(this, slot);
    recolourStream(this, this.queries.get(query).plan?.join?.stream);
    this.emit("queries", "objects", "pairs");
  }

  /** Draw a layer on the map, or hide it. */
  showLayer(name, shown) {
    const layer = this.layers.get(name);
    if (!layer || layer.shown === shown) return;
    this.layers.set(name, { ...layer, shown });
    keepLook(this, name);
    this.emit("layers");
  }

  /** Record whether more features of a layer are in view than are drawn. */
  truncateLayer(name, truncated) {
    const layer = this.layers.get(name);
    if (!layer || layer.truncated === truncated) return;
    this.layers.set(name, { ...layer, truncated });
    this.emit("layers");
  }

  readEvents() {
    if (this.unread === 0) return;
    this.unread = 0;
    this.emit("events");
  }

  count(query) {
    return this.answers.get(query)?.size ?? 0;
  }

  /** Return the last batch of a query's answer that the page holds, from where a new connection goes on; null without an answer. */
  heldOf(query) {
    return this.answered(query) ? (this.held.get(query) ?? null) : null;
  }

  /** Return whether the answer of a query has arrived. */
  answered(query) {
    return this.answers.has(query) || this.figures.has(query);
  }

  /** Return how long ago the focal object of a query last reported, by the clock of its own stream; NaN for a fixed place. */
  focusAgeMs(query, nowMs) {
    const place = this.places.get(query);
    return place?.key ? this.streamTimeMs(place.stream, nowMs) - place.timeMs : NaN;
  }

  /** Return whether the focal object of a query is silent. */
  focusSilent(query, nowMs) {
    const kind = this.streams.get(this.places.get(query)?.stream)?.kind ?? KINDS.length - 1;
    return this.focusAgeMs(query, nowMs) > STALE_MS[KINDS[kind]];
  }

  /** Return the number of pairs in the answer of a join. */
  pairCount(query) {
    return this.answers.get(query)?.pairs ?? 0;
  }

  /** Return the shown queries that join a layer, as `{query, counts}`; `counts` is the number of paired objects by the feature's key. */
  joinsOf(layer) {
    return [...this.queries.values()]
      .filter((query) => query.shown && query.plan?.join?.layer === layer && this.answers.has(query.query))
      .map((query) => ({ query, counts: this.answers.get(query.query).counts }));
  }

  /** Return the partners of an object in all answers: those in which it is the object, and those in which it is the partner. */
  partnersOf(slot) {
    const queries = this.objects.queries[slot].filter((number) => this.queries.has(number));
    const partners = queries.flatMap((number) => this.answers.get(number)?.partners(slot) ?? []).filter(Boolean);
    const key = this.objects.keys[slot];
    for (const { query } of joinsWith(this, slot)) {
      for (const other of this.answers.get(query).slotsWith(key)) {
        partners.push({ key: this.objects.keys[other], properties: this.objects.texts[other] });
      }
    }
    return partners;
  }

  /** Choose whether a layer is coloured by how many objects its features are paired with. */
  colourByCount(name, byCount) {
    const layer = this.layers.get(name);
    if (!layer) return;
    this.layers.set(name, { ...layer, byCount });
    keepLook(this, name);
    this.emit("layers", "pairs");
  }

  /** Return the queries to list, in the order in which they were made. */
  listed() {
    return [...this.queries.values()].filter((q) => LIVE_STATUSES.includes(q.status)).sort((a, b) => a.query - b.query);
  }

  /** Return a stream's own time at `nowMs`: its newest event time plus the time since that arrived. So a replay of old data is not old. */
  streamTimeMs(name, nowMs) {
    const stream = this.streams.get(name);
    return stream && Number.isFinite(stream.newestMs) ? stream.newestMs + (nowMs - stream.heardMs) : NaN;
  }

  ageMs(slot, nowMs) {
    return this.streamTimeMs(this.objects.streams[slot], nowMs) - this.objects.timeMs[slot];
  }

  /** Return, by stream, the event time before which its objects are stale. */
  staleBefore(nowMs) {
    return new Map([...this.streams.values()].map((s) => [s.name, this.streamTimeMs(s.name, nowMs) - STALE_MS[KINDS[s.kind]]]));
  }

  /**
   * Return the state that the badge shows: live, slow, reconnecting, offline, down or signed-out. Without a connection
   * the page knows nothing of the engine.
   */
  connection(nowMs) {
    if (this.link.state !== "open") return ["signed-out", "offline"].includes(this.link.state) ? this.link.state : "reconnecting";
    if (this.engine.alive === false) return "down";
    const silent = nowMs - (Number.isFinite(this.engine.atMs) ? this.engine.atMs : this.link.sinceMs);
    if (silent > 10_000) return "down";
    return this.engine.lagMs > 2000 || silent > 4000 ? "slow" : "live";
  }

  /** Forget the views and their answers. */
  dropViews() {
    for (const number of [...this.views.keys()]) dropAnswer(this, number);
    this.views.clear();
    this.emit("objects");
  }
}

const REDUCERS = {
  hello(store, message, nowMs) {
    store.user = message.user;
    store.space = message.space;
    store.dimensions = (message.dimensions ?? []).map(({ name }) => name);
    store.clockOffsetMs = message.server_time_us / 1000 - nowMs;
    store.restated = new Set();
    store.going.clear();
    for (const [query, { regions }] of store.roles) store.sentBefore.set(query, new Map(regions.map((region) => [region.region, region])));
    store.toldLayers = new Set();
    keepStreams(store, message);
    return ["streams", "objects", "status"];
  },

  "stream.list"(store, message) {
    keepStreams(store, message);
    return ["streams", "objects"];
  },

  "query.status"(store, message) {
    if (!store.maps(message.space)) return [];
    const known = store.queries.get(message.query);
    store.restated?.add(message.query);
    const topics = ["queries"];
    if (message.status === "cancelled") {
      dropAnswer(store, message.query);
      store.queries.delete(message.query);
      topics.push("objects", "pairs");
    } else {
      const { type, id, ...status } = message;
      const colour = known?.colour ?? freeColour(store, message.query);
      if (known) dropUnlike(store, known, message.plan);
      store.queries.set(message.query, { shown: true, ...known, ...status, colour });
      const [before, now] = [known?.plan?.join?.stream, message.plan?.join?.stream];
      if (before !== now) for (const stream of [before, now]) recolourStream(store, stream);
    }
    return topics;
  },

  /** The server may have missed changes: the page asks for the layers again; the server sends everything else by itself. */
  "changes.missed"(store) {
    store.toldLayers = new Set();
    return [];
  },

  "layer.status"(store, { layer }) {
    store.toldLayers.add(layer.name);
    if (layer.status === "deleted") dropLayer(store, layer.name);
    else keepLayer(store, layer);
    return ["layers"];
  },

  /** The reply to `GET /layers/`, for which the page asks after `hello` and after `changes.missed`. */
  "layers.listed"(store, { layers }) {
    const listed = new Set(layers.map(({ name }) => name));
    const known = new Set([...store.layers.keys(), ...store.looks.keys()]);
    for (const name of known) if (!listed.has(name) && !store.toldLayers.has(name)) dropLayer(store, name);
    for (const layer of layers) if (!store.toldLayers.has(layer.name)) keepLayer(store, layer);
    return ["layers"];
  },

  "view.status"(store, message) {
    const views = new Map(Object.entries(message.views).map(([stream, number]) => [number, stream]));
    for (const number of store.views.keys()) if (!views.has(number)) dropAnswer(store, number);
    store.views = views;
    // The first `view.status` after `hello` comes after the status of every query. Queries without one ended while the
    // connection was down.
    for (const number of store.restated ? store.queries.keys() : []) {
      if (store.restated.has(number)) continue;
      dropAnswer(store, number);
      store.queries.delete(number);
    }
    store.restated = null;
    return ["objects", "queries"];
  },

  "answer.snapshot"(store, message, nowMs) {
    const stream = streamOf(store, message.query);
    if (stream === undefined) return [];
    hold(store, message.query, message, true);
    heard(store, stream, message, nowMs);
    if (message.resync) store.resyncMs = nowMs;
    if (!message.rows.sign.includes(PLACED)) store.places.delete(message.query);
    if (aggregates(store, message.query)) return figures.snapshot(store, message, nowMs);
    const before = store.answers.get(message.query) ?? new Answer();
    const first = !store.answers.has(message.query);
    const after = new Answer();
    store.answers.set(message.query, after);
    const { rows } = message;
    for (let row = 0; row < rows.length; row++) {
      if (rows.sign[row] === PLACED) {
        setPlace(store, message.query, rows, row);
        continue;
      }
      const slot = take(store, stream, rows, row);
      const partner = rows.partners?.[row] ?? null;
      const { object } = after.add(slot, partner);
      setRank(after, slot, rows, row);
      if (object && !before.hasObject(slot)) join(store, slot, message.query);
      if (!first && !before.has(slot, partner)) record(store, message.query, 1, "snapshot", slot, partner, nowMs);
    }
    for (const slot of before.slots.keys()) {
      for (const partner of before.partners(slot)) {
        if (!after.has(slot, partner)) record(store, message.query, -1, "snapshot", slot, partner, nowMs);
      }
      if (!after.hasObject(slot)) leave(store, slot, message.query);
    }
    recolourStream(store, store.queries.get(message.query)?.plan?.join?.stream);
    return ["objects", "queries", "pairs", "events", "status", "places"];
  },

  "answer.change"(store, message, nowMs) {
    const stream = streamOf(store, message.query);
    if (stream === undefined) return [];
    hold(store, message.query, message);
    heard(store, stream, message, nowMs);
    if (aggregates(store, message.query)) return figures.change(store, message, nowMs);
    const seenBefore = store.eventsSeen;
    let answer = store.answers.get(message.query);
    if (!answer) store.answers.set(message.query, (answer = new Answer()));
    const { size: sizeBefore, pairs: pairsBefore, changes: changesBefore } = answer;
    const kept = store.queries.get(message.query)?.plan?.emit !== "all";
    const { rows } = message;
    let placed = false;
    for (let row = 0; row < rows.length; row++) {
      const sign = rows.sign[row];
      if (sign === PLACED) placed = setPlace(store, message.query, rows, row);
      else if (sign < 0) change.left(store, message.query, stream, answer, rows, row, nowMs);
      else change.matched(store, message.query, stream, kept ? answer : null, rows, row, nowMs);
    }
    const topics = ["objects"];
    if (answer.size !== sizeBefore || answer.pairs !== pairsBefore) topics.push("queries");
    if (rows.partners && answer.changes !== changesBefore) topics.push("pairs");
    if (store.eventsSeen !== seenBefore) topics.push("events");
    if (placed || rows.ranks) topics.push("places");
    return topics;
  },

  "query.roles"(store, message) {
    const before = store.sentBefore.get(message.query) ?? new Map();
    const told = message.regions.map((region) => ({ ...region, sent: region.sent + (before.get(region.region)?.sent ?? 0) }));
    const known = new Set(told.map(({ region }) => region));
    const gone = [...before.values()].filter(({ region }) => !known.has(region)).map((region) => ({ ...region, participates: false, last_s: 0 }));
    store.roles.set(message.query, { ...message, regions: [...told, ...gone].sort((a, b) => a.region - b.region) });
    return ["roles"];
  },

  "answer.resumed"(store, message) {
    hold(store, message.query, message, true);
    return [];
  },

  "answer.held"(store, message) {
    const behind = new Set(message.without);
    for (const query of store.going) {
      const { space } = store.queries.get(query) ?? {};
      if (space === message.space && !behind.has(query)) hold(store, query, message);
    }
    return [];
  },

  "engine.status"(store, message, nowMs) {
    if (message.space !== undefined && message.space !== store.space) return [];
    const { alive } = message; // null while Redis does not answer the server
    const atMs = alive === null ? store.engine.atMs : nowMs;
    store.engine = { alive, lagMs: message.lag_ms ?? NaN, elementsPerS: message.elements_per_s ?? NaN, atMs };
    return ["status"];
  },

  "stream.status"(store, message) {
    for (const [name, health] of Object.entries(message.streams)) {
      const stream = store.streams.get(name);
      if (stream) stream.health = health;
    }
    return ["streams"];
  },
};

const change = {
  left(store, query, stream, answer, rows, row, nowMs) {
    const slot = store.objects.slot(stream, rows.keys[row]);
    const partner = rows.partners?.[row] ?? null;
    if (slot === undefined) return;
    const { gone, object } = answer.delete(slot, partner);
    if (!gone) return;
    store.objects.update(slot, rows, row);
    record(store, query, -1, rows.reason[row], slot, partner, nowMs);
    if (object) leave(store, slot, query);
    if (partner) recolourPartner(store, query, partner);
  },

  matched(store, query, stream, answer, rows, row, nowMs) {
    if (!answer && store.objects.slot(stream, rows.keys[row]) === undefined) return; // emit "all" keeps no answer, so it adds no object
    const slot = take(store, stream, rows, row);
    const partner = rows.partners?.[row] ?? null;
    const { fresh, object } = answer ? answer.add(slot, partner) : { fresh: true, object: false };
    if (object) join(store, slot, query);
    if (answer) setRank(answer, slot, rows, row);
    if (answer && fresh && partner) recolourPartner(store, query, partner);
    if (fresh) record(store, query, 1, rows.reason[row], slot, partner, nowMs);
  },
};

/** Answers of aggregates, whose rows are figures rather than objects. */
const figures = {
  snapshot(store, message, nowMs) {
    const before = store.figures.get(message.query);
    const after = new Figures();
    store.figures.set(message.query, after);
    figures.take(store, after, message, nowMs);
    if (before) {
      after.follow(before);
      for (const crossing of after.crossedUnlike(before)) recordCrossing(store, message.query, 1, "snapshot", crossing, NaN, nowMs);
      for (const crossing of before.crossedUnlike(after)) recordCrossing(store, message.query, -1, "snapshot", crossing, NaN, nowMs);
    }
    return ["figures", "queries", "events", "status", "places"];
  },

  change(store, message, nowMs) {
    const seenBefore = store.eventsSeen;
    if (!store.figures.has(message.query)) store.figures.set(message.query, new Figures());
    const placed = figures.take(store, store.figures.get(message.query), message, nowMs, ({ rows }, row) => {
      const { key, properties } = rows.partners[row];
      const crossing = [rows.keys[row], key, parsed(properties).value ?? null];
      recordCrossing(store, message.query, rows.sign[row], rows.reason[row], crossing, rows.timeMs[row], nowMs);
    });
    return ["figures", ...(store.eventsSeen === seenBefore ? [] : ["events"]), ...(placed ? ["places"] : [])];
  },

  take(store, answer, message, nowMs, onCrossing = () => {}) {
    const { rows } = message;
    let placed = false;
    for (let row = 0; row < rows.length; row++) {
      if (rows.sign[row] === PLACED) placed = setPlace(store, message.query, rows, row);
      else if (answer.take(rows, row, nowMs)) onCrossing(message, row);
    }
    return placed;
  },
};

function aggregates(store, query) {
  return Boolean(store.queries.get(query)?.plan?.aggregate);
}

/** Record where a query is. Without a new position, as when its focal object is lost, it stays where it was. */
function setPlace(store, query, rows, row) {
  const plan = store.queries.get(query)?.plan;
  const before = store.places.get(query);
  const lost = LOST.includes(rows.reason[row]);
  const [lon, lat] = Number.isFinite(rows.lon[row]) || !before ? [rows.lon[row], rows.lat[row]] : [before.lon, before.lat];
  const known = parsed(rows.properties[row]);
  const name = rows.keys[row] ? title(rows.keys[row], known) : "";
  const about = { stream: plan?.around?.stream ?? plan?.stream, key: rows.keys[row], name, timeMs: rows.timeMs[row] };
  store.places.set(query, { ...about, lon, lat, reach: rows.distances?.[row] ?? NaN, lost });
  return true;
}

function setRank(answer, slot, rows, row) {
  if (rows.ranks?.[row]) answer.rank(slot, rows.ranks[row], rows.distances?.[row] ?? NaN);
}

function streamOf(store, query) {
  return store.views.get(query) ?? store.queries.get(query)?.stream;
}

/** Record the last batch of a saved query's answer that the page holds; `begins`: the answer begins on this connection. */
function hold(store, query, { epoch, batch }, begins = false) {
  if (!store.queries.has(query)) return;
  if (begins) store.going.add(query);
  const held = store.held.get(query);
  if (begins || !held || held.epoch !== epoch || held.batch < batch) store.held.set(query, { epoch, batch });
}

/** Set the clocks of the streams whose objects a message reports. */
function heard(store, stream, { query, rows, lag_ms }, nowMs) {
  if (rows.length > 0) store.dataMs = nowMs;
  if (Number.isFinite(lag_ms)) store.lagMs = lag_ms;
  const limit = nowMs + store.clockOffsetMs + FUTURE_MS;
  let [newest, placed] = [-Infinity, -Infinity];
  for (let row = 0; row < rows.length; row++) {
    const time = rows.timeMs[row];
    if (!(time <= limit)) continue;
    if (rows.sign[row] === PLACED) placed = Math.max(placed, time);
    else if (time > newest) newest = time;
  }
  const plan = store.queries.get(query)?.plan;
  if (!plan?.aggregate) tick(store, stream, newest, nowMs);
  if (placed > 0) tick(store, plan?.around?.stream ?? stream, placed, nowMs);
}

function tick(store, stream, newest, nowMs) {
  const state = store.streams.get(stream);
  if (!state || newest === -Infinity) return;
  const current = store.streamTimeMs(stream, nowMs);
  if (newest <= state.newestMs && current > newest) return;
  state.newestMs = newest;
  state.heardMs = nowMs;
}

function take(store, stream, rows, row) {
  const kind = store.streams.get(stream)?.kind ?? KINDS.length - 1;
  const slot = store.objects.ensure(stream, kind, rows.keys[row]);
  store.objects.update(slot, rows, row);
  return slot;
}

function join(store, slot, query) {
  const { queries, streams } = store.objects;
  queries[slot].push(query);
  if (store.queries.has(query) || (queries[slot].length === 1 && isPartner(store, streams[slot]))) recolour(store, slot);
}

function leave(store, slot, query) {
  const queries = store.objects.queries[slot];
  const at = queries.indexOf(query);
  if (at >= 0) queries.splice(at, 1);
  if (queries.length === 0) store.objects.remove(slot);
  else recolour(store, slot);
}

/** Colour an object by the last shown query that has it in its answer, or else by the last one that has it as a partner. */
function recolour(store, slot) {
  const shown = store.objects.queries[slot].map((number) => store.queries.get(number)).filter((query) => query?.shown);
  const joins = joinsWith(store, slot);
  store.objects.paired[slot] = joins.length > 0 || shown.some(({ plan }) => plan?.kind === "join") ? 1 : 0;
  store.objects.colour[slot] = (shown.at(-1) ?? joins.at(-1))?.colour ?? NO_COLOUR;
}

/** Return the shown queries that have an object as a partner. */
function joinsWith(store, slot) {
  const { streams, keys } = store.objects;
  if (!isPartner(store, streams[slot])) return [];
  return [...store.queries.values()].filter(
    ({ query, shown, plan }) => shown && plan?.join?.stream === streams[slot] && store.answers.get(query)?.counts.has(keys[slot]),
  );
}

/** Return whether any query joins with the objects of a stream. */
function isPartner(store, stream) {
  for (const { plan } of store.queries.values()) if (plan?.join?.stream === stream) return true;
  return false;
}

function recolourPartner(store, query, partner) {
  const slot = store.objects.slot(store.queries.get(query)?.plan?.join?.stream, partner.key);
  if (slot !== undefined) recolour(store, slot);
}

function recolourStream(store, stream) {
  for (const slot of store.objects.byStream.get(stream)?.values() ?? []) recolour(store, slot);
}

function dropAnswer(store, query) {
  const answer = store.answers.get(query);
  for (const kept of [store.answers, store.figures, store.places, store.held, store.going, store.roles, store.sentBefore]) kept.delete(query);
  for (const slot of answer?.slots.keys() ?? []) leave(store, slot, query);
  recolourStream(store, store.queries.get(query)?.plan?.join?.stream);
}

/** Forget the parts of a query's answer that do not fit the kind of query that an edit made it. */
function dropUnlike(store, { query, plan }, after) {
  if (Boolean(plan?.aggregate) !== Boolean(after?.aggregate)) dropAnswer(store, query);
  if (!after?.around) store.places.delete(query);
  if (after?.kind !== "knn") store.answers.get(query)?.order.clear();
}

/** Take over the streams that the map can show. Keep what is known of them, and update how their objects are drawn. */
function keepStreams(store, { spaces, streams }) {
  store.mapped = spaces ? new Set(spaces.filter((s) => s.geographic).map((s) => s.name)) : null;
  const known = store.streams;
  store.streams = new Map();
  for (const stream of streams.filter((s) => store.maps(s.space))) {
    const before = known.get(stream.name);
    const heard = before?.space === stream.space ? before : {};
    store.streams.set(stream.name, { newestMs: NaN, heardMs: NaN, health: null, ...heard, ...stream, kind: kindOf(stream.icon) });
    store.objects.draw(stream.name, kindOf(stream.icon));
  }
}

function freeColour(store, query) {
  return freeOf(COLOURS, store.queries, query);
}

function keepLayer(store, layer) {
  const known = store.layers.get(layer.name);
  const colour = known?.colour ?? freeOf(LAYER_COLOURS, store.layers, store.layers.size);
  const look = { shown: false, byCount: false, ...store.looks.get(layer.name) };
  store.layers.set(layer.name, { ...look, truncated: false, ...known, ...layer, colour });
}

function keepLook(store, name) {
  const { shown, byCount } = store.layers.get(name);
  store.looks.set(name, { shown, byCount });
}

function dropLayer(store, name) {
  store.layers.delete(name);
  store.looks.delete(name);
}

/** Return the first colour that is not in use; if all are, the one that `number` gives. */
function freeOf(colours, things, number) {
  const used = new Set([...things.values()].map((thing) => thing.colour));
  for (let colour = 0; colour < colours; colour++) if (!used.has(colour)) return colour;
  return number % colours;
}

/** Record an event of a user's query; views have no events. */
function record(store, query, sign, reason, slot, partner, nowMs) {
  const { objects } = store;
  push(store, query, nowMs, {
    sign,
    reason,
    stream: objects.streams[slot],
    key: objects.keys[slot],
    text: objects.texts[slot],
    partner: partner && title(partner.key, parsed(partner.properties)),
    partnerKey: partner?.key,
    predicate: store.queries.get(query)?.plan?.join?.predicate,
    timeMs: objects.timeMs[slot],
    lon: objects.lon[slot],
    lat: objects.lat[slot],
  });
}

/** Record that a threshold `[group, name, value]` was crossed, or is no longer crossed. */
function recordCrossing(store, query, sign, reason, [group, threshold, value], timeMs, nowMs) {
  const { lon = NaN, lat = NaN } = store.places.get(query) ?? {};
  const at = timeMs > 0 ? timeMs : nowMs + store.clockOffsetMs;
  push(store, query, nowMs, { sign, reason, key: "", group, threshold, value, timeMs: at, lon, lat });
}

function push(store, query, nowMs, event) {
  const status = store.queries.get(query);
  if (!status) return;
  const about = { number: ++store.eventsSeen, query, queryName: status.name, colour: status.colour, heardMs: nowMs };
  store.events.push({ ...about, ...event });
  if (store.events.length > 2 * EVENTS_KEPT) store.events = store.events.slice(-EVENTS_KEPT);
  store.unread++;
}
