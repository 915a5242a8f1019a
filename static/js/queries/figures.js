// The answer of an aggregate: a figure for each group, the crossed thresholds, and the recent course of the figures. Pure.

import { parsed } from "../format.js";

export const KEPT_MS = 300_000;
export const POINTS_KEPT = 1200;

export class Figures {
  constructor() {
    this.groups = new Map(); // group -> {value, count, object, lon, lat, points: [[ms, value], ...]}
    this.crossed = new Map(); // group -> name of a crossed threshold -> the value that came with it
  }

  /** The groups, the largest figure first, as `[group, figure]`. */
  ranked() {
    const size = ([, { value }]) => value ?? -Infinity;
    return [...this.groups].sort((a, b) => size(b) - size(a) || (a[0] < b[0] ? -1 : 1));
  }

  /** The names of the thresholds that a group has crossed. */
  raisedBy(group) {
    return [...(this.crossed.get(group)?.keys() ?? [])];
  }

  /** Apply a row. Return whether it says that a threshold is newly crossed, or no longer crossed. */
  take(rows, row, nowMs) {
    const threshold = rows.partners?.[row];
    if (threshold) return this.#cross(rows.keys[row], rows.sign[row], threshold);
    if (rows.sign[row] < 0) this.groups.delete(rows.keys[row]);
    else this.#set(rows, row, nowMs);
    return false;
  }

  /** Put the points of the answer before a snapshot in front, so that the course of the figures goes on. */
  follow(before) {
    for (const [group, figure] of this.groups) figure.points.unshift(...(before.groups.get(group)?.points ?? []));
  }

  /** The thresholds that are crossed here and not in another answer, as `[group, name, value]`. */
  crossedUnlike(other) {
    return [...this.crossed].flatMap(([group, names]) =>
      [...names].filter(([name]) => !other.crossed.get(group)?.has(name)).map(([name, value]) => [group, name, value]),
    );
  }

  #set(rows, row, nowMs) {
    const { value = null, count = 0, object = null } = parsed(rows.properties[row]);
    const points = this.groups.get(rows.keys[row])?.points ?? [];
    points.push([nowMs, value]);
    // Of the points that are too old, keep the newest: its value held when the window began.
    let old = Math.max(0, points.length - POINTS_KEPT);
    while (old + 1 < points.length && points[old + 1][0] <= nowMs - KEPT_MS) old++;
    points.splice(0, old);
    this.groups.set(rows.keys[row], { value, count, object, lon: rows.lon[row], lat: rows.lat[row], points });
  }

  #cross(group, sign, { key, properties }) {
    let names = this.crossed.get(group);
    if (!names) this.crossed.set(group, (names = new Map()));
    if (sign < 0) return names.delete(key);
    const fresh = !names.has(key);
    names.set(key, parsed(properties).value ?? null);
    return fresh;
  }
}
