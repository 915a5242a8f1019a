// The colours of objects in the store.

import { kindOf } from "../kinds/registry.js";
import { NO_COLOUR } from "../objects/objects.js";

/** Colour an object by the last shown query that has it in its answer, or else by the last one that has it as a partner. */
export function recolour(store, slot) {
  const shown = store.objects.queries[slot].map((number) => store.queries.get(number)).filter((query) => query?.shown);
  const joins = joinsWith(store, slot);
  store.objects.paired[slot] = joins.length > 0 || shown.some(({ plan }) => kindOf(plan).paired) ? 1 : 0;
  store.objects.colour[slot] = (shown.at(-1) ?? joins.at(-1))?.colour ?? NO_COLOUR;
}

/** Return the shown queries that have an object as a partner. */
export function joinsWith(store, slot) {
  const { streams, keys } = store.objects;
  if (!isPartner(store, streams[slot])) return [];
  return [...store.queries.values()].filter(
    ({ query, shown, plan }) =>
      shown && plan?.join?.stream === streams[slot] && store.answers.get(query)?.counts.has(keys[slot]),
  );
}

/** Return whether any query joins with the objects of a stream. */
export function isPartner(store, stream) {
  for (const { plan } of store.queries.values()) if (plan?.join?.stream === stream) return true;
  return false;
}

export function recolourPartner(store, query, partner) {
  const slot = store.objects.slot(store.queries.get(query)?.plan?.join?.stream, partner.key);
  if (slot !== undefined) recolour(store, slot);
}

/** Colour the objects of a query's answer, and their partners. */
export function recolourAnswer(store, query) {
  for (const slot of store.answers.get(query)?.slots.keys() ?? []) recolour(store, slot);
  recolourStream(store, store.queries.get(query)?.plan?.join?.stream);
}

export function recolourStream(store, stream) {
  for (const slot of store.objects.byStream.get(stream)?.values() ?? []) recolour(store, slot);
}
