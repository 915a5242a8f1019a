// The time of a replay in the address: "2026-11-25T14:03:22Z", or with the speed "2026-11-25T14:03:22Z,60". Pure.

import { SPEEDS } from "./clock.js";

/** Return the replay that a text holds, `{atMs, speed}`; null if it holds none. */
export function replayOf(text) {
  const [time, speed = "1"] = text.split(",");
  const atMs = Date.parse(time);
  return Number.isFinite(atMs) ? { atMs, speed: SPEEDS.includes(Number(speed)) ? Number(speed) : 1 } : null;
}

/** Return the text of a replay; null for null, the live map. */
export function replayText(state) {
  if (!state) return null;
  const time = new Date(1000 * Math.floor(state.atMs / 1000)).toISOString().replace(".000Z", "Z");
  return `${time}${state.speed === 1 ? "" : `,${state.speed}`}`;
}
