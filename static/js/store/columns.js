// Reads columns of Arrow tables.

import { middle } from "../geometry.js";

/** Return the middles of boxes along an axis. */
export function middles(boxes, axis) {
  const {
    type,
    offset,
    children: [{ values }],
  } = boxes.data[0];
  const [width, n] = [type.listSize, type.listSize / 2];
  const out = new Float64Array(boxes.length);
  for (let row = 0, at = offset * width + axis; row < out.length; row++, at += width)
    out[row] = middle(values[at], values[at + n]);
  return out;
}

/** Return a time in ms, given microseconds; null for none. */
export function inMs(us) {
  return us === undefined || us === null ? null : Number(us) / 1000;
}
