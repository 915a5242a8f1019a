// The time of a replay in the address, among what follows the view: "#9/60/25&replay=2026-11-25T14:03:22Z&speed=60". Pure.

import { SPEEDS } from "./clock.js";

/** Return the replay that a hash holds, `{atMs, speed}`; null if it holds none. */
export function replayOf(hash) {
  const at = hash.indexOf("&");
  const fields = new URLSearchParams(at < 0 ? "" : hash.slice(at + 1));
  const atMs = Date.parse(fields.get("replay") ?? "");
  const speed = Number(fields.get("speed"));
  return Number.isFinite(atMs) ? { atMs, speed: SPEEDS.includes(speed) ? speed : 1 } : null;
}

/** Return the part of a hash that holds a replay; "" for null, the live map. */
export function replayHash(state) {
  if (!state) return "";
  const time = new Date(1000 * Math.floor(state.atMs / 1000)).toISOString().replace(".000Z", "Z");
  return `&replay=${time}${state.speed === 1 ? "" : `&speed=${state.speed}`}`;
}
