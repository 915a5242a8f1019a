// Which objects are in which answers of the store.

import { kindOf } from "../kinds/registry.js";
import { KINDS } from "../objects/object-kinds.js";
import { isPartner, recolour, recolourStream } from "./store-colours.js";

export function take(store, stream, rows, row) {
  const kind = store.streams.get(stream)?.kind ?? KINDS.length - 1;
  const slot = store.objects.ensure(stream, kind, rows.keys[row]);
  store.objects.update(slot, rows, row);
  return slot;
}

export function join(store, slot, query) {
  const { queries, streams } = store.objects;
  queries[slot].push(query);
  if (store.queries.has(query) || (queries[slot].length === 1 && isPartner(store, streams[slot])))
    recolour(store, slot);
}

export function leave(store, slot, query) {
  const queries = store.objects.queries[slot];
  const at = queries.indexOf(query);
  if (at >= 0) queries.splice(at, 1);
  if (queries.length === 0) store.objects.remove(slot);
  else recolour(store, slot);
}

export function dropAnswer(store, query) {
  const answer = store.answers.get(query);
  const kept = [
    store.answers,
    store.figures,
    store.sketched,
    store.places,
    store.held,
    store.going,
    store.roles,
    store.sentBefore,
    store.told.counts,
    store.told.missed,
    store.encounters,
  ];
  for (const known of kept) known.delete(query);
  for (const slot of answer?.slots.keys() ?? []) leave(store, slot, query);
  recolourStream(store, store.queries.get(query)?.plan?.join?.stream);
}

/** Forget the parts of a query's answer that do not fit the kind of query that an edit made it. */
export function dropUnlike(store, { query, plan }, after) {
  const unlike = ["told", "lasting"].some((name) => Boolean(kindOf(plan)[name]) !== Boolean(kindOf(after)[name]));
  const asked = [plan, after].some((one) => kindOf(one).asked);
  if (Boolean(plan?.aggregate) !== Boolean(after?.aggregate) || unlike || asked) dropAnswer(store, query);
  if (!after?.around) store.places.delete(query);
  if (!kindOf(after).ranked) store.answers.get(query)?.order.clear();
}
