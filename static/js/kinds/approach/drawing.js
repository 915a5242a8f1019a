// Draws where the objects of predicted entries will be: their ways ahead, as dashed lines.

import { vectorOf } from "../../map/course-vectors.js";

const DASH_PX = [7, 5];

/**
 * Return the ways of the objects that are in the answers of predicted entries: `[i, seconds, colour]` of each, `i` its index in `visible`.
 *
 * @param {Record<string, any>} objects
 * @param {Record<string, any>} visible
 * @param {Map<number, any>} queries by number; those that are not shown have no ways
 */
export function waysAhead(objects, { n, slots }, queries) {
  const predicted = [...queries.values()].filter(({ plan, shown }) => shown && plan?.kind === "approach");
  const ways = [];
  for (const { query, plan, colour } of predicted) {
    for (let i = 0; i < n; i++) {
      if (objects.queries[slots[i]]?.includes(query)) ways.push([i, plan.within_s, colour]);
    }
  }
  return ways;
}

/** Draw ways, as `waysAhead` returns them, as dashed lines. */
export function drawWays(context, ways, { objects, visible, view, colours, surface }) {
  for (const [i, seconds, colour] of ways) {
    const vector = vectorOf(objects, visible.slots[i], seconds);
    if (!vector) continue;
    context.beginPath();
    context.moveTo(visible.x[i], visible.y[i]);
    context.lineTo(visible.x[i] + vector[0] * view.world, visible.y[i] + vector[1] * view.world);
    for (const [width, style, dash] of [
      [4, surface, []],
      [2, colours[colour], DASH_PX],
    ]) {
      context.setLineDash(dash);
      context.lineWidth = width;
      context.strokeStyle = style;
      context.stroke();
    }
  }
  context.setLineDash([]);
}
