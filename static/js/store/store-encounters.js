// What answers of encounters say: the store keeps those that last, and records their beginnings and ends.

import { Answer } from "./answers.js";
import { encounterOf, isEncounter, pairOf } from "../events/encounters.js";
import { recordEncounter } from "./store-events.js";

const TOPICS = ["objects", "queries", "events"];

/** Take the whole answer of a query for encounters, and record what began and ended unheard; return the topics that changed. */
export function snapshotOfEncounters(store, message, nowMs) {
  const { query, rows } = message;
  const first = !store.answers.has(query);
  const before = lastingOf(store, query);
  const told = Array.from({ length: rows.length }, (_, row) => row).filter((row) => isEncounter(rows, row));
  const after = new Map(told.map((row) => encounterOf(rows, row)).map((found) => [pairOf(found), found]));
  store.answers.set(query, new Answer()); // its objects are on the map for other reasons
  store.encounters.set(query, after);
  const unlike = (one, other) => [...one].filter(([pair]) => !other.has(pair)).map(([, found]) => found);
  if (!first) for (const found of unlike(after, before)) recordEncounter(store, query, 1, "snapshot", found, nowMs);
  for (const found of unlike(before, after)) recordEncounter(store, query, -1, "snapshot", found, nowMs);
  return [...TOPICS, "status"];
}

/** Take a change of an answer of encounters; return the topics that changed. */
export function changeOfEncounters(store, { query, rows }, nowMs) {
  if (!store.answers.has(query)) store.answers.set(query, new Answer());
  const lasting = lastingOf(store, query);
  store.encounters.set(query, lasting);
  for (let row = 0; row < rows.length; row++) {
    if (!isEncounter(rows, row)) continue;
    const found = encounterOf(rows, row);
    const known = rows.sign[row] < 0 ? lasting.delete(pairOf(found)) : lasting.has(pairOf(found));
    if (rows.sign[row] >= 0) lasting.set(pairOf(found), found);
    if (rows.sign[row] < 0 ? known : !known)
      recordEncounter(store, query, rows.sign[row] < 0 ? -1 : 1, rows.reason[row], found, nowMs);
  }
  return TOPICS;
}

function lastingOf(store, query) {
  return store.encounters.get(query) ?? new Map();
}
