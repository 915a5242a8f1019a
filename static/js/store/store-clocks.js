// How far the store is: the clocks of streams, and the last batch of each answer that it holds.

import { PLACED } from "./frames.js";

// An event time further ahead of the server's clock than this is an error of the sender. The stream's clock ignores it,
// so that it does not make other objects look old.
const FUTURE_MS = 60_000;

/** Record the last batch of a saved query's answer that the page holds; `begins`: the answer begins on this connection. */
export function hold(store, query, { epoch, batch }, begins = false) {
  if (!store.queries.has(query)) return;
  if (begins) store.going.add(query);
  const held = store.held.get(query);
  if (begins || !held || held.epoch !== epoch || held.batch < batch) store.held.set(query, { epoch, batch });
}

/** Record when the newest report was received that the answers of the page take into account, by this computer's clock. */
export function received(store, ms) {
  if (!(ms <= store.dataMs)) store.dataMs = ms;
}

/** Set the clocks of the streams whose objects a message reports. */
export function heard(store, stream, { query, rows, lag_ms: lagMs }, nowMs) {
  if (Number.isFinite(lagMs)) {
    store.lagMs = lagMs;
    received(store, nowMs - lagMs);
    const viewed = rows.length > 0 && store.streams.get(store.views.get(query));
    if (viewed) viewed.receivedMs = nowMs - lagMs;
  }
  tickBy(store, stream, query, rows, nowMs);
}

function tickBy(store, stream, query, rows, nowMs) {
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
