// Where objects will be in some minutes if they keep course and speed, as thin lines.

import { mercatorPerMetre } from "../geometry.js";

export const MINUTES = [0, 1, 5, 10];
export const VECTORS_UP_TO = 2000; // objects in view; of more than that, only the selected ones have a line

const DEG = Math.PI / 180;
const SLOWEST_MPS = 0.2; // an object at rest has no line
const SHORTEST_PX = 3;

/**
 * Return how far an object goes on the map in some time, as a Web Mercator vector `[right, down]` of unit size; null if its course or
 * its speed is not known, or if it rests. The course is kept, so the line is straight; its scale is that of the place where it begins.
 */
export function vectorOf({ course, speed, y }, slot, seconds) {
  if (!(speed[slot] >= SLOWEST_MPS) || Number.isNaN(course[slot])) return null;
  const far = speed[slot] * seconds * mercatorPerMetre(y[slot]);
  return [far * Math.sin(course[slot] * DEG), -far * Math.cos(course[slot] * DEG)];
}

/**
 * Draw the lines of the objects on the canvas, except for stale ones.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, any>} what `objects`; `visible`, `{n, slots, x, y}`; `world`, its width in pixels; `seconds`; `stale(slot)`; `shown(slot)`;
 *   `line`, the colour, and `edge`, that of its casing
 */
export function drawVectors(context, { objects, visible, world, seconds, stale, shown, line, edge }) {
  const { n, slots, x, y } = visible;
  context.beginPath();
  for (let i = 0; i < n; i++) {
    const slot = slots[i];
    if (!shown(slot)) continue;
    const vector = vectorOf(objects, slot, seconds);
    if (!vector || stale(slot)) continue;
    const [right, down] = [vector[0] * world, vector[1] * world];
    if (Math.abs(right) + Math.abs(down) < SHORTEST_PX) continue;
    context.moveTo(x[i], y[i]);
    context.lineTo(x[i] + right, y[i] + down);
  }
  for (const [width, style] of [
    [3, edge],
    [1.2, line],
  ]) {
    context.lineWidth = width;
    context.strokeStyle = style;
    context.stroke();
  }
}
