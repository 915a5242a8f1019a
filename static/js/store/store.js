// The state of the page, and how each message of the server changes it. Pure: no DOM, no socket, no clock.

import { Incidents } from "../incidents/store.js";
import { kindOf } from "../kinds/registry.js";
import { KINDS } from "../objects/object-kinds.js";
import { Objects } from "../objects/objects.js";
import { joinsWith, recolourAnswer } from "./store-colours.js";
import { dropAnswer } from "./store-members.js";
import { REDUCERS } from "./store-messages.js";
import { ToldPairs } from "../events/told-pairs.js";

const LIVE_STATUSES = ["pending", "running", "paused", "failed", "waiting"];

// The map draws an object faded that has not reported for this long, by the clock of its own stream.
const STALE_MS = KINDS.map((kind) => ({ ship: 360_000, aircraft: 60_000, bus: 180_000 })[kind] ?? 300_000);

/** @param {Record<string, any>} looks how the layers were shown before, as `looksOf` returns it; null if that is not known */
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
  awaited = new Set(); // saved queries whose answers at a time of the past are being computed

  constructor(looks) {
    this.past = false; // whether objects and answers are those of a replay
    this.objects = new Objects();
    this.streams = new Map(); // name -> {name, title, icon, enabled, kind, health, newestMs, heardMs, receivedMs}
    this.queries = new Map(); // number -> the last query.status, with {colour, shown}
    this.layers = new Map(); // name -> the last layer.status, with {colour, shown, byCount, truncated}
    this.looks = new Map(Object.entries(looks ?? {})); // name -> {shown, byCount}, also of layers that are not listed yet
    this.toldLayers = new Set(); // layers with a status since the page last asked for the list, which says nothing newer about them
    this.views = new Map(); // number -> stream
    this.answers = new Map(); // number -> Answer, of views and of queries
    this.figures = new Map(); // number -> Figures, of aggregates
    this.sketched = new Map(); // number -> the documents of the answers, of queries of sketches
    this.held = new Map(); // number -> {epoch, batch}: the last batch of a saved query's answer that the page holds
    this.going = new Set(); // saved queries whose answers have begun on this connection
    this.roles = new Map(); // number -> the last query.roles, with counts since the page was opened
    this.sentBefore = new Map(); // number -> region -> its entry in `roles` when the connection was made; its counts go on from there
    this.regions = new Map(); // space -> the last message `regions`, while the page shows them
    this.places = new Map(); // number -> where a query is, {stream, key, name, lon, lat, timeMs, reach, lost}
    this.told = new ToldPairs();
    this.encounters = new Map(); // number -> the encounters that last, by pair, of queries for encounters
    this.incidents = new Incidents();
    this.events = []; // newest last
    this.eventsSeen = 0; // events ever recorded
    this.unread = 0;
    this.user = null;
    this.teams = new Map(); // number -> {team, name, role}, of the teams in which the user is
    this.space = null; // name of the built-in space; the badge shows the state of its engine
    this.dimensions = []; // names of the dimensions of the built-in space
    this.mapped = null; // names of the geographic spaces, which the map can show; null: all spaces
    this.engine = { alive: null, lagMs: NaN, elementsPerS: NaN, atMs: NaN };
    this.link = { state: "connecting", sinceMs: NaN };
    this.dataMs = NaN; // when the newest report was received that the answers of the page take into account
    this.lagMs = NaN; // of the newest answer on this connection
    this.resyncMs = NaN;
    this.clockOffsetMs = 0; // the server's clock minus this computer's
    this.restated = null; // while the page asks for the list anew: the queries whose status has come; otherwise null
    this.selected = null; // {stream, key}
    this.selectedFeature = null; // {layer, key, properties}
    this.picked = null; // the event of a told pair or an encounter whose objects are both selected
    this.listeners = new Map();
  }

  /**
   * Call `listener` after every change of a topic: objects, queries, places, figures, roles, regions, pairs, streams, layers, events, incidents,
   * teams, status, selection.
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

  /** Note the state of the connection, and why the server refuses one, in words. */
  setLink(state, nowMs, reason = "") {
    if (this.link.state === state) return;
    this.link = { state, sinceMs: nowMs, reason };
    // What came over the previous connection says nothing of the engine's present state.
    if (state === "open") {
      this.engine = { ...this.engine, alive: null, lagMs: NaN, atMs: NaN };
      this.lagMs = NaN;
    }
    this.emit("status");
  }

  /** Return whether the map shows the objects of a space. */
  maps(space) {
    return space === undefined || this.mapped === null || this.mapped.has(space);
  }

  select(stream, key) {
    this.selected = stream === null ? null : { stream, key };
    this.selectedFeature = this.picked = null;
    this.emit("selection");
  }

  /** Select both objects of a told pair, given its event; the panel is that of the first. */
  selectPair(event) {
    this.selected = { stream: event.stream, key: event.key };
    this.selectedFeature = null;
    this.picked = event;
    this.emit("selection");
  }

  /** Select a feature `{layer, key, properties}` of a layer, in place of an object. */
  selectFeature(feature) {
    this.selected = this.picked = null;
    this.selectedFeature = feature;
    this.emit("selection");
  }

  selectedSlot() {
    return this.selected ? this.objects.slot(this.selected.stream, this.selected.key) : undefined;
  }

  /** Return the slots of the selected objects that are on the map: none, one, or the two of a pair. */
  selectedSlots() {
    const partner = this.picked && this.objects.slot(this.picked.partnerStream, this.picked.partnerKey);
    return [this.selectedSlot(), partner ?? undefined].filter((slot) => slot !== undefined);
  }

  /** Show or hide a query's rectangle and its colour on the map. */
  show(query, shown) {
    this.queries.get(query).shown = shown;
    recolourAnswer(this, query);
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
    return this.answers.has(query) || this.figures.has(query) || this.sketched.has(query);
  }

  /** Return how long ago the focal object of a query last reported, by the clock of its own stream; NaN for a fixed place. */
  focusAgeMs(query, nowMs) {
    const place = this.places.get(query);
    return place?.key ? this.streamTimeMs(place.stream, nowMs) - place.timeMs : NaN;
  }

  /** Return whether the focal object of a query is silent. */
  focusSilent(query, nowMs) {
    const kind = this.streams.get(this.places.get(query)?.stream)?.kind ?? KINDS.length - 1;
    return this.focusAgeMs(query, nowMs) > STALE_MS[kind];
  }

  /** Return how many encounters of a query last; null for a query of another kind. */
  lastingCount(query) {
    return kindOf(this.queries.get(query)?.plan).lasting ? (this.encounters.get(query)?.size ?? 0) : null;
  }

  /** Return how many pairs a query told while the page showed it; null for a query that keeps an answer. */
  toldCount(query) {
    return kindOf(this.queries.get(query)?.plan).told ? (this.told.counts.get(query) ?? 0) : null;
  }

  /** Return what was not sent of a query that tells things once: `{count, uncounted}`; null if nothing is missing. */
  missedOf(query) {
    const { before, now, uncounted } = this.told.missed.get(query) ?? { before: 0, now: 0, uncounted: false };
    return before + now > 0 || uncounted ? { count: before + now, uncounted } : null;
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

  /** Return the queries that the page knows, in the order in which they were made. */
  listed() {
    return [...this.queries.values()].filter((q) => LIVE_STATUSES.includes(q.status)).sort((a, b) => a.query - b.query);
  }

  /** Begin to record which queries the server states anew. */
  restate() {
    this.restated = new Set();
  }

  /** Forget the queries that the server has not stated since `restate`: they have ended. */
  forgetUnstated() {
    const unstated = [...this.queries.keys()].filter((number) => !this.restated.has(number));
    this.restated = null;
    this.forget(unstated);
  }

  /** Forget queries with their answers. */
  forget(queries) {
    for (const number of queries) {
      dropAnswer(this, number);
      this.queries.delete(number);
    }
    if (queries.length > 0) this.emit("objects", "queries", "pairs");
  }

  /** Forget the answers of queries that the page is not subscribed to any more. */
  dropAnswers(queries) {
    for (const number of queries) dropAnswer(this, number);
    if (queries.length > 0) this.emit("objects", "queries", "figures", "places", "pairs");
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
    return new Map(
      [...this.streams.values()].map((s) => [s.name, this.streamTimeMs(s.name, nowMs) - STALE_MS[s.kind]]),
    );
  }

  /** Return how far the engine is behind: as it says, or before that as the newest answer on this connection says; NaN if neither does. */
  behindMs() {
    return Number.isFinite(this.engine.lagMs) ? this.engine.lagMs : this.lagMs;
  }

  /**
   * Return the state that the badge shows: loading, live, slow, reconnecting, offline, down, full or signed-out. Without a
   * connection the page knows nothing of the engine, and on a new one nothing until the server tells of it.
   */
  connection(nowMs) {
    if (this.link.state !== "open")
      return ["signed-out", "offline", "full"].includes(this.link.state) ? this.link.state : "reconnecting";
    if (this.engine.alive === false) return "down";
    const silent = nowMs - (Number.isFinite(this.engine.atMs) ? this.engine.atMs : this.link.sinceMs);
    if (silent > 10_000) return "down";
    if (this.behindMs() > 2000 || silent > 4000) return "slow";
    return Number.isFinite(this.engine.atMs) || Number.isFinite(this.behindMs()) ? "live" : "loading";
  }

  /** Forget the views and their answers. */
  dropViews() {
    for (const number of [...this.views.keys()]) dropAnswer(this, number);
    this.views.clear();
    this.emit("objects");
  }
}

function keepLook(store, name) {
  const { shown, byCount } = store.layers.get(name);
  store.looks.set(name, { shown, byCount });
}
