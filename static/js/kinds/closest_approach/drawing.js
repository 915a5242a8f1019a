// Draws closest approaches: dashed lines from both objects to where they will be then, with a mark between, the distance and the time.

import { closestText } from "../../format.js";
import { Room } from "../../map/labels.js";
import { screenLine } from "../../map/pair-lines.js";
import { lineOf } from "../../events/told-pairs.js";

const DASH_PX = [7, 5];
const MARK_PX = 4;
const ASIDE_PX = 8;
const TEXT_PX = 12;
const SYMBOL_PX = 12; // from the middle

/**
 * Return the pairs of the shown queries for closest approaches: `{from, places, colour, afterS, text}`, `from` where the two are
 * now; the most urgent first.
 *
 * @param {Record<string, any>} store
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
        found.push({ from, places: closest.places, colour, afterS, text: closestText(distance, afterS) });
      }
    }
  }
  return found.sort((one, other) => one.afterS - other.afterS);
}

/**
 * Draw pairs, as `closestPairs` returns them, each with its text if there is room for that.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {any[]} pairs
 * @param {Record<string, any>} how `view` as for `drawPairs`; `width` and `height` of the canvas; `colours` of queries; `edge`, that of casings
 */
export function drawClosest(context, pairs, { view, width, height, colours, edge }) {
  const room = new Room(width, height);
  for (const { from, places, colour } of pairs) {
    const between = screenLine(lineOf(...places), view);
    context.beginPath();
    for (const way of from.map((place, i) => screenLine(lineOf(place, places[i]), view))) {
      const [x, y] = way.from;
      room.add(x - SYMBOL_PX, y - SYMBOL_PX, x + SYMBOL_PX, y + SYMBOL_PX);
      addLine(context, way);
    }
    strokeBoth(context, edge, colours[colour], DASH_PX);
    context.beginPath();
    addLine(context, between);
    for (const [x, y] of [between.from, between.to]) {
      context.moveTo(x + MARK_PX, y);
      context.arc(x, y, MARK_PX, 0, 2 * Math.PI);
    }
    strokeBoth(context, edge, colours[colour], []);
  }
  context.setLineDash([]);
  Object.assign(context, {
    font: `600 ${TEXT_PX}px system-ui, sans-serif`,
    textAlign: "left",
    textBaseline: "middle",
    lineWidth: 4,
    strokeStyle: edge,
  });
  for (const { places, colour, text } of pairs) {
    const place = placeOf(screenLine(lineOf(...places), view), context.measureText(text).width, room);
    if (!place) continue;
    const [x, y] = place;
    context.strokeText(text, x, y);
    context.fillStyle = colours[colour];
    context.fillText(text, x, y);
  }
}

/** Return where to write beside the middle of a line, to the right or to the left of it; null if there is no room. */
function placeOf({ from, to }, width, room) {
  const [middle, y] = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2 - ASIDE_PX];
  for (const x of [middle + ASIDE_PX, middle - ASIDE_PX - width]) {
    const box = [x, y - TEXT_PX / 2, x + width, y + TEXT_PX / 2];
    if (!room.free(...box)) continue;
    room.add(...box);
    return [x, y];
  }
  return null;
}

function addLine(context, { from, to }) {
  context.moveTo(...from);
  context.lineTo(...to);
}

function strokeBoth(context, edge, colour, dash) {
  for (const [width, style, dashes] of [
    [4, edge, []],
    [2, colour, dash],
  ]) {
    context.setLineDash(dashes);
    context.lineWidth = width;
    context.strokeStyle = style;
    context.stroke();
  }
  context.setLineDash([]);
}
