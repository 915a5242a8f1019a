// How each message of the server changes the store. A reducer returns the topics that changed.

import { INCIDENT_REDUCERS } from "../incidents/store.js";
import { kindOf } from "../objects/object-kinds.js";
import { takeChange, takeSnapshot } from "./store-answers.js";
import { hold, received } from "./store-clocks.js";
import { coloured, COLOURS, LAYER_COLOURS } from "../looks.js";
import { recolourAnswer, recolourStream } from "./store-colours.js";
import { dropAnswer, dropUnlike } from "./store-members.js";

export const REDUCERS = {
  hello(store, message, nowMs) {
    store.user = message.user;
    keepTeams(store, message);
    store.space = message.space;
    store.dimensions = (message.dimensions ?? []).map(({ name }) => name);
    store.clockOffsetMs = message.server_time_us / 1000 - nowMs;
    store.going.clear();
    for (const [query, { regions }] of store.roles)
      store.sentBefore.set(query, new Map(regions.map((region) => [region.region, region])));
    for (const missed of store.told.missed.values())
      Object.assign(missed, { before: missed.before + missed.now, now: 0 });
    store.toldLayers = new Set();
    keepStreams(store, message);
    return ["streams", "objects", "teams", "status"];
  },

  "team.list"(store, message) {
    keepTeams(store, message);
    return ["teams", "queries", "layers"];
  },

  "stream.list"(store, message) {
    keepStreams(store, message);
    return ["streams", "objects"];
  },

  regions(store, message) {
    store.regions.set(message.space, message);
    return ["regions"];
  },

  ...INCIDENT_REDUCERS,

  "query.status": takeStatus,

  "query.listed"(store, { queries }) {
    return [...new Set(queries.flatMap((query) => takeStatus(store, query)))];
  },

  /** The server may have missed changes: the page asks for the queries and layers again; the server sends the rest by itself. */
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
    for (const [stream, number] of Object.entries(message.watched ?? {})) views.set(number, stream);
    for (const number of store.views.keys()) if (!views.has(number)) dropAnswer(store, number);
    store.views = views;
    return ["objects", "queries"];
  },

  "answer.snapshot": takeSnapshot,
  "answer.change": takeChange,

  /** What was not sent since the subscription began, in place of what an earlier message said. */
  "answer.missed"(store, { query, missed, uncounted }) {
    const known = store.told.missed.get(query);
    store.told.missed.set(query, {
      before: known?.before ?? 0,
      now: missed,
      uncounted: uncounted || Boolean(known?.uncounted),
    });
    return ["queries"];
  },

  "query.roles"(store, message) {
    const before = store.sentBefore.get(message.query) ?? new Map();
    const told = message.regions.map((region) => ({
      ...region,
      sent: region.sent + (before.get(region.region)?.sent ?? 0),
    }));
    const known = new Set(told.map(({ region }) => region));
    const gone = [...before.values()]
      .filter(({ region }) => !known.has(region))
      .map((region) => ({ ...region, participates: false, last_s: 0 }));
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
    if (message.newest_us) received(store, message.newest_us / 1000 - store.clockOffsetMs);
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
    // Of an engine that has had nothing to read since the server began to listen, the gateway knows when the newest report came.
    const lastUs = Math.max(
      ...[...store.streams.values()].map(({ health }) => health?.last_us ?? NaN).filter(Number.isFinite),
    );
    if (store.engine.alive && Number.isNaN(store.dataMs) && Number.isFinite(lastUs))
      received(store, lastUs / 1000 - store.clockOffsetMs);
    return ["streams"];
  },
};

/** Take over how a query stands; return the topics that changed. */
function takeStatus(store, { type, id, ...status }) {
  if (!store.maps(status.space)) return [];
  const { query } = status;
  const known = store.queries.get(query);
  store.restated?.add(query);
  if (status.status === "cancelled") {
    dropAnswer(store, query);
    store.queries.delete(query);
    store.incidents.drop(query);
    return ["queries", "objects", "pairs", "incidents"];
  }
  const look = coloured(status.look ?? query, COLOURS);
  const plan = keptPlan(store, known, status.plan);
  store.queries.set(query, { shown: true, ...known, ...status, plan, ...look });
  if (known && known.colour !== look.colour) recolourAnswer(store, query);
  const [before, now] = [known?.plan?.join?.stream, status.plan?.join?.stream];
  if (before !== now) for (const stream of [before, now]) recolourStream(store, stream);
  return ["queries"];
}

/** Return the plan of a query. Told again it stays the same object, so that what was drawn for it is not drawn again. */
function keptPlan(store, known, plan) {
  if (JSON.stringify(known?.plan) === JSON.stringify(plan)) return known?.plan;
  if (known) dropUnlike(store, known, plan);
  return plan;
}

/** Take over the streams that the map can show. Keep what is known of them, and update how their objects are drawn. */
function keepStreams(store, { spaces, streams }) {
  store.mapped = spaces ? new Set(spaces.filter((s) => s.geographic).map((s) => s.name)) : null;
  const known = store.streams;
  store.streams = new Map();
  for (const stream of streams.filter((s) => store.maps(s.space))) {
    const before = known.get(stream.name);
    const heard = before?.space === stream.space ? before : {};
    store.streams.set(stream.name, {
      newestMs: NaN,
      heardMs: NaN,
      health: null,
      ...heard,
      ...stream,
      kind: kindOf(stream.icon),
    });
    store.objects.draw(stream.name, kindOf(stream.icon));
  }
}

function keepTeams(store, { teams = [] }) {
  store.teams = new Map(teams.map((team) => [team.team, team]));
}

function keepLayer(store, layer) {
  const known = store.layers.get(layer.name);
  const look = { shown: false, byCount: false, ...store.looks.get(layer.name) };
  store.layers.set(layer.name, {
    ...look,
    truncated: false,
    ...known,
    ...layer,
    ...coloured(layer.look ?? 0, LAYER_COLOURS),
  });
}

function dropLayer(store, name) {
  store.layers.delete(name);
  store.looks.delete(name);
}
