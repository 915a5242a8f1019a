// Draws told pairs and encounters as lines onto a canvas: one path for all lines that look alike.

import { lineOf, STEPS } from "../events/told-pairs.js";

const SHORT_PX = 16; // a shorter line is hidden below the symbols of its two objects
const RING_PX = 11; // so a ring shows where it is
const END_PX = 4;
const MARK_PX = 6;

/**
 * Draw the pairs that were told lately, in the colours of their queries.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, any>} told a ToldPairs
 * @param {Record<string, any>} parts `view`, `{world, middle, left, top}`; `nowMs`; `colourOf(query)`, null for a query that is hidden
 */
export function drawPairs(context, told, { view, nowMs, colourOf }) {
  context.lineWidth = 2;
  for (const { query, step, lines } of told.groups(nowMs)) {
    const colour = colourOf(query);
    if (colour === null) continue;
    context.beginPath();
    for (const line of lines) addLine(context, screenLine(line, view));
    context.globalAlpha = 0.9 * (1 - step / STEPS);
    context.strokeStyle = colour;
    context.stroke();
  }
  context.globalAlpha = 1;
}

/**
 * Draw the encounters of a query that last: a line between the two where they are now, and a diamond where they were nearest.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Iterable<any>} lasting the encounters, as `encounterOf` returns them
 * @param {Record<string, any>} parts `view`, as for `drawPairs`; `colour`; `edge`; `placesOf(encounter)`, where the two are now, `[[lon, lat], [lon, lat]]`
 */
export function drawEncounters(context, lasting, { view, colour, edge, placesOf }) {
  const marks = [];
  context.beginPath();
  for (const found of lasting) {
    addLine(context, screenLine(lineOf(...placesOf(found)), view));
    const { from, to } = screenLine(lineOf([found.lon, found.lat], found.partnerPlace), view);
    marks.push([(from[0] + to[0]) / 2, (from[1] + to[1]) / 2]);
  }
  stroke(context, edge, 5, colour, 2.5);
  context.beginPath();
  for (const [x, y] of marks) {
    context.moveTo(x, y - MARK_PX);
    for (const [dx, dy] of [
      [MARK_PX, 0],
      [0, MARK_PX],
      [-MARK_PX, 0],
      [0, -MARK_PX],
    ])
      context.lineTo(x + dx, y + dy);
  }
  context.fillStyle = colour;
  context.fill();
  stroke(context, edge, 1.5);
}

/** Draw a pair that the user picked, given its event: its line with both ends, on an edge. */
export function drawPicked(context, { lon, lat, partnerPlace }, { view, colour, edge }) {
  const line = screenLine(lineOf([lon, lat], partnerPlace), view);
  context.beginPath();
  addLine(context, line);
  for (const [x, y] of [line.from, line.to]) {
    context.moveTo(x + END_PX, y);
    context.arc(x, y, END_PX, 0, 2 * Math.PI);
  }
  stroke(context, edge, 6, colour, 3);
}

/** Stroke the path once for each style, given with its width. */
function stroke(context, ...styles) {
  for (let i = 0; i < styles.length; i += 2) {
    context.strokeStyle = styles[i];
    context.lineWidth = styles[i + 1];
    context.stroke();
  }
}

/** Return where a line is on the canvas, in the copy of the world that is nearest to the middle of the map. */
export function screenLine({ x1, y1, x2, y2 }, { world, middle, left, top }) {
  const turn = Math.round(middle - (x1 + x2) / 2);
  const at = (x, y) => [(x + turn) * world - left, y * world - top];
  return { from: at(x1, y1), to: at(x2, y2) };
}

function addLine(context, { from, to }) {
  context.moveTo(...from);
  context.lineTo(...to);
  if (Math.hypot(to[0] - from[0], to[1] - from[1]) >= SHORT_PX) return;
  const [x, y] = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
  context.moveTo(x + RING_PX, y);
  context.arc(x, y, RING_PX, 0, 2 * Math.PI);
}
