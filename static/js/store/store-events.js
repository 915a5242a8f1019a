// The store's list of events: what entered and left the answers of queries.

import { parsed, title } from "../format.js";
import { kindOf } from "../kinds/registry.js";

export const EVENTS_KEPT = 2000;

/** Record an event of a user's query; views have no events. */
export function record(store, query, sign, reason, slot, partner, nowMs, /** @type {any} */ passage = null) {
  const { objects } = store;
  push(store, query, nowMs, {
    sign,
    reason,
    stream: objects.streams[slot],
    key: objects.keys[slot],
    text: objects.texts[slot],
    partner: partner && title(partner.key, parsed(partner.properties)),
    partnerKey: partner?.key,
    predicate:
      partner && kindOf(store.queries.get(query)?.plan).close
        ? "closest"
        : store.queries.get(query)?.plan?.join?.predicate,
    closest: partner?.closest && { ...partner.closest, distance: partner.distance },
    timeMs: objects.timeMs[slot],
    lon: objects.lon[slot],
    lat: objects.lat[slot],
    ...passage,
  });
}

/** Return when and where an entry or exit between two reports was, and the times `fromMs` and `toMs` of these; null for one at a report. */
export function passageOf(rows, row) {
  const fromMs = rows.fromMs?.[row] ?? NaN;
  if (!Number.isFinite(fromMs)) return null;
  return {
    interpolated: true,
    fromMs,
    toMs: rows.toMs[row],
    timeMs: rows.timeMs[row],
    lon: rows.lon[row],
    lat: rows.lat[row],
  };
}

/** Record a pair that a join over event time told. The row says where its objects were then; both may be elsewhere by now. */
export function recordTold(store, query, rows, row, nowMs) {
  const partner = rows.partners[row];
  const { stream, join } = store.queries.get(query).plan;
  push(store, query, nowMs, {
    told: true,
    sign: 1,
    reason: rows.reason[row],
    stream,
    key: rows.keys[row],
    text: rows.properties[row],
    partner: title(partner.key, parsed(partner.properties)),
    partnerKey: partner.key,
    partnerStream: join.stream,
    partnerPlace: [partner.lon, partner.lat],
    partnerTimeMs: partner.timeMs,
    windowMs: partner.windowMs,
    distance: partner.distance,
    timeMs: rows.timeMs[row],
    lon: rows.lon[row],
    lat: rows.lat[row],
  });
}

/** Record the beginning or the end of an encounter, as `encounterOf` returns it. Both were nearest at the places of the event. */
export function recordEncounter(store, query, sign, reason, found, nowMs) {
  const { stream, join } = store.queries.get(query)?.plan ?? {};
  const timeMs = (sign > 0 ? found.sinceMs : found.untilMs) ?? nowMs + store.clockOffsetMs;
  push(store, query, nowMs, { ...found, met: true, sign, reason, stream, partnerStream: join?.stream, timeMs });
}

/** Record that a threshold `[group, name, value]` was crossed, or is no longer crossed. */
export function recordCrossing(
  store,
  query,
  sign,
  reason,
  /** @type {any[]} */ [group, threshold, value],
  timeMs,
  nowMs,
) {
  const { lon = NaN, lat = NaN } = store.places.get(query) ?? {};
  const at = timeMs > 0 ? timeMs : nowMs + store.clockOffsetMs;
  const { property } = store.queries.get(query)?.plan?.aggregate ?? {};
  push(store, query, nowMs, { sign, reason, key: "", group, threshold, property, value, timeMs: at, lon, lat });
}

function push(store, query, nowMs, event) {
  const status = store.queries.get(query);
  if (!status) return;
  const about = { number: ++store.eventsSeen, query, queryName: status.name, colour: status.colour, heardMs: nowMs };
  store.events.push(Object.assign(event, about)); // a spread of so many keys takes five times as long
  if (store.events.length > 2 * EVENTS_KEPT) store.events = store.events.slice(-EVENTS_KEPT);
  store.unread++;
}
