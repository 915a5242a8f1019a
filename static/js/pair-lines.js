// Draws told pairs as lines onto a canvas: one path for all lines that look alike.

import { lineOf, STEPS } from "./told-pairs.js";

const SHORT_PX = 16; // a shorter line is hidden below the symbols of its two objects
const RING_PX = 11; // so a ring shows where it is
const END_PX = 4;

/**
 * Draw the pairs that were told lately, in the colours of their queries.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {object} told a ToldPairs
 * @param {object} parts `view`, `{world, middle, left, top}`; `nowMs`; `colourOf(query)`, null for a query that is hidden
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

/** Draw a pair that the user picked, given its event: its line with both ends, on an edge. */
export function drawPicked(context, { lon, lat, partnerPlace }, { view, colour, edge }) {
  const line = screenLine(lineOf([lon, lat], partnerPlace), view);
  context.beginPath();
  addLine(context, line);
  for (const [x, y] of [line.from, line.to]) {
    context.moveTo(x + END_PX, y);
    context.arc(x, y, END_PX, 0, 2 * Math.PI);
  }
  for (const [width, style] of [[6, edge], [3, colour]]) {
    context.lineWidth = width;
    context.strokeStyle = style;
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
