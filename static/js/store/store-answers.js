// What answers say: the store takes their snapshots and changes row by row.

import { Answer } from "./answers.js";
import { Figures } from "../queries/figures.js";
import { parsed, title } from "../format.js";
import { PLACED } from "./frames.js";
import { kindOf } from "../kinds/registry.js";
import { heard, hold } from "./store-clocks.js";
import { recolourPartner, recolourStream } from "./store-colours.js";
import { changeOfEncounters, snapshotOfEncounters } from "./store-encounters.js";
import { passageOf, record, recordCrossing, recordTold } from "./store-events.js";
import { join, leave, take } from "./store-members.js";
import { takeDocuments } from "./store-sketches.js";

// The reasons with which the server sends the place of a query whose focal object is lost.
const LOST = ["expired", "dropped"];

/** Take the whole answer of a query or a view; return the topics that changed. */
export function takeSnapshot(store, message, nowMs) {
  const stream = streamOf(store, message.query);
  if (stream === undefined) return [];
  if (kindOf(store.queries.get(message.query)?.plan).asked) return takeDocuments(store, message, true);
  hold(store, message.query, message, true);
  heard(store, stream, message, nowMs);
  if (message.resync) store.resyncMs = nowMs;
  if (!message.rows.sign.includes(PLACED)) store.places.delete(message.query);
  if (aggregates(store, message.query)) return figures.snapshot(store, message, nowMs);
  if (kindOf(store.queries.get(message.query)?.plan).lasting) return snapshotOfEncounters(store, message, nowMs);
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
}

/** Take a change of an answer; return the topics that changed. */
export function takeChange(store, message, nowMs) {
  const stream = streamOf(store, message.query);
  if (stream === undefined) return [];
  if (kindOf(store.queries.get(message.query)?.plan).asked) return takeDocuments(store, message, false);
  hold(store, message.query, message);
  heard(store, stream, message, nowMs);
  if (aggregates(store, message.query)) return figures.change(store, message, nowMs);
  if (kindOf(store.queries.get(message.query)?.plan).told) return takeTold(store, message, nowMs);
  if (kindOf(store.queries.get(message.query)?.plan).lasting) return changeOfEncounters(store, message, nowMs);
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
}

/** Take pairs that are told once. They are no answer, and their objects are on the map for other reasons. */
function takeTold(store, { query, rows }, nowMs) {
  if (!store.answers.has(query)) store.answers.set(query, new Answer());
  for (let row = 0; row < rows.length; row++) {
    const partner = rows.partners?.[row];
    if (rows.sign[row] < 1 || partner?.timeMs === undefined) continue; // of the plan before an edit
    const places = { place: [rows.lon[row], rows.lat[row]], partnerPlace: [partner.lon, partner.lat] };
    store.told.add({ query, key: rows.keys[row], partnerKey: partner.key, ...places }, nowMs);
    recordTold(store, query, rows, row, nowMs);
  }
  return ["objects", "queries", "events"];
}

const change = {
  left(store, query, stream, answer, rows, row, nowMs) {
    const slot = store.objects.slot(stream, rows.keys[row]);
    const partner = rows.partners?.[row] ?? null;
    if (slot === undefined) return;
    const { gone, object } = answer.delete(slot, partner);
    if (!gone) return;
    store.objects.update(slot, rows, row);
    record(store, query, -1, rows.reason[row], slot, partner, nowMs, passageOf(rows, row));
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
    if (fresh) record(store, query, 1, rows.reason[row], slot, partner, nowMs, passageOf(rows, row));
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
      for (const crossing of after.crossedUnlike(before))
        recordCrossing(store, message.query, 1, "snapshot", crossing, NaN, nowMs);
      for (const crossing of before.crossedUnlike(after))
        recordCrossing(store, message.query, -1, "snapshot", crossing, NaN, nowMs);
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

  take(store, answer, message, nowMs, /** @type {(message: any, row: number) => void} */ onCrossing = () => {}) {
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
  const [lon, lat] =
    Number.isFinite(rows.lon[row]) || !before ? [rows.lon[row], rows.lat[row]] : [before.lon, before.lat];
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
