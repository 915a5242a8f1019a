// Draws closest approaches: dashed lines from both objects to where they will be then, with a mark between, the distance and the time.

import { closestText } from "./format.js";
import { screenLine } from "./pair-lines.js";
import { lineOf } from "./told-pairs.js";

const DASH_PX = [7, 5];
const MARK_PX = 4;
const ASIDE_PX = 8;

/**
 * Return the pairs of the shown queries for closest approaches: `{from, places, colour, text}`, `from` where the two are now.
 *
 * @param {object} store
 */
export function closestPairs({ answers, objects, queries }) {
  const found = [];
  for (const { query, plan, colour, shown } of queries.values()) {
    if (!shown || plan?.kind !== "closest_approach") continue;
    for (const [slot, partners] of answers.get(query)?.slots ?? []) {
      for (const { key, closest, distance } of partners?.values() ?? []) {
        const other = closest && objects.slot(plan.join?.stream ?? plan.stream, key);
        if (other === undefined) continue;
        const from = [slot, other].map((at) => [objects.lon[at], objects.lat[at]]);
        const afterS = (closest.timeMs - Math.max(objects.timeMs[slot], objects.timeMs[other])) / 1000;
        found.push({ from, places: closest.places, colour, text: closestText(distance, afterS) });
      }
    }
  }
  return found;
}

/** Draw pairs, as `closestPairs` returns them; `view` as for `drawPairs`, `colours` of queries, `edge` that of casings. */
export function drawClosest(context, pairs, { view, colours, edge }) {
  context.font = "600 12px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const { from, places, colour, text } of pairs) {
    const ways = from.map((place, i) => screenLine(lineOf(place, places[i]), view));
    const between = screenLine(lineOf(...places), view);
    context.beginPath();
    for (const line of ways) addLine(context, line);
    strokeBoth(context, edge, colours[colour], DASH_PX);
    context.beginPath();
    addLine(context, between);
    for (const [x, y] of [between.from, between.to]) {
      context.moveTo(x + MARK_PX, y);
      context.arc(x, y, MARK_PX, 0, 2 * Math.PI);
    }
    strokeBoth(context, edge, colours[colour], []);
    const [x, y] = [0, 1].map((axis) => (between.from[axis] + between.to[axis]) / 2);
    context.lineWidth = 4;
    context.strokeStyle = edge;
    context.strokeText(text, x + ASIDE_PX, y - ASIDE_PX);
    context.fillStyle = colours[colour];
    context.fillText(text, x + ASIDE_PX, y - ASIDE_PX);
  }
  context.setLineDash([]);
}

function addLine(context, { from, to }) {
  context.moveTo(...from);
  context.lineTo(...to);
}

function strokeBoth(context, edge, colour, dash) {
  for (const [width, style, dashes] of [[4, edge, []], [2, colour, dash]]) {
    context.setLineDash(dashes);
    context.lineWidth = width;
    context.strokeStyle = style;
    context.stroke();
  }
  context.setLineDash([]);
}
