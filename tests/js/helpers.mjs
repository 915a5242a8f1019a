// What the tests of the store share: messages as the server sends them.

import { columnsOf } from "../../static/js/store/frames.js";

export const NOW = Date.UTC(2026, 4, 1, 12);

export function hello(...streams) {
  return { type: "hello", user: "ada", space: "earth", server_time_us: NOW * 1000, streams };
}

export const SHIPS = { name: "ships", title: "Ships", icon: "ship", enabled: true };

export function row(sign, key, lon, lat, more = {}) {
  const bounds = [lon, lat, null, lon, lat, null];
  return { sign, key, time_us: NOW * 1000, lon, lat, bounds, reason: "moved", properties: {}, ...more };
}

export function change(query, ...rows) {
  return { type: "answer.change", query, batch: 1, lag_ms: 100, rows: columnsOf(rows) };
}

export function snapshot(query, ...rows) {
  return { ...change(query, ...rows), type: "answer.snapshot", resync: false };
}

export function status(query, more = {}) {
  const plan = { stream: "ships", compare: { lo: [0, 0], hi: [1, 1] }, report: "inside", emit: "changes" };
  return {
    type: "query.status",
    query,
    name: `Query ${query}`,
    stream: "ships",
    status: "running",
    error: null,
    plan,
    shared: false,
    mine: true,
    ...more,
  };
}

export function layer(name, more = {}) {
  const about = { title: name, version: 1, status: "ready", progress: 1, error: null, problems: [], problem_count: 0 };
  const content = { features: 4, bounds: [0, 0, 1, 1], geometry_types: ["Polygon"], stream_space: "earth" };
  return { type: "layer.status", layer: { name, ...about, ...content, ...more } };
}

/** Return a function that returns whole numbers from 0 to below a limit, the same ones for a seed (the generator mulberry32). */
export function randomOf(seed) {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
