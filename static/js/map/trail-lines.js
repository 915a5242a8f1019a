// Draws trails on a canvas: in the colour of their object, or each part in that of the class that the object had there.

import { NO_COLOUR } from "../objects/objects.js";

const WIDTHS = { selected: 2.2, other: 1.2 };
const CLASSED = { selected: 3, other: 1.8 };
const CASING_PX = 1.6; // the dark or bright edge about a line that is coloured by classes

/**
 * Draw the trails of some objects.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Record<string, any>} what `objects` of the store; `slots`, those with trails; `selected`, slots; `view`, `{world, middle, left, top}`;
 *   `colours`, the palette; `lengthMs`; `colourBy`, a ColourBy; `paint`, the colours of its classes
 */
export function drawTrails(context, { objects, slots, selected, view, colours, lengthMs, colourBy, paint }) {
  context.lineJoin = context.lineCap = "round";
  const trail = (slot) => objects.trails.read(slot, objects.timeMs[slot] - lengthMs, colourBy.kept);
  if (colourBy.active) drawClassed(context, { slots, selected, view, paint, colourBy, trail });
  else
    for (const slot of slots)
      drawPlain(context, { objects, slot, marked: selected.includes(slot), view, colours, places: trail(slot) });
  context.globalAlpha = 1;
  context.lineCap = "butt";
}

function drawPlain(context, { objects, slot, marked, view, colours, places }) {
  if (places.n < 2) return;
  const colour = objects.colour[slot];
  context.strokeStyle = colour === NO_COLOUR ? colours.kinds[objects.kind[slot]] : colours.queries[colour];
  context.lineWidth = WIDTHS[marked ? "selected" : "other"];
  context.globalAlpha = marked ? 0.85 : 0.4;
  context.beginPath();
  eachEdge(places, view, (x, y, toX, toY, i) => {
    if (i === 1) context.moveTo(x, y);
    context.lineTo(toX, toY);
  });
  context.stroke();
}

function drawClassed(context, { slots, selected, view, paint, colourBy, trail }) {
  for (const [name, some] of [
    ["other", slots.filter((slot) => !selected.includes(slot))],
    ["selected", slots.filter((slot) => selected.includes(slot))],
  ]) {
    const casing = new Path2D();
    const byClass = new Map();
    for (const slot of some) {
      const places = trail(slot);
      let before;
      eachEdge(places, view, (x, y, toX, toY, i) => {
        const one = colourBy.classAt(slot, places.value[i], places.timeMs[i]);
        if (!byClass.has(one)) byClass.set(one, new Path2D());
        const path = byClass.get(one);
        if (i === 1) casing.moveTo(x, y);
        if (one !== before) path.moveTo(x, y);
        casing.lineTo(toX, toY);
        path.lineTo(toX, toY);
        before = one;
      });
    }
    context.globalAlpha = name === "selected" ? 0.9 : 0.35;
    context.lineWidth = CLASSED[name] + CASING_PX;
    context.strokeStyle = paint.edge;
    context.stroke(casing);
    context.globalAlpha = 1;
    context.lineWidth = CLASSED[name];
    for (const [one, path] of byClass) {
      context.strokeStyle = paint.lines[one];
      context.stroke(path);
    }
  }
}

/** Call `visit(x, y, toX, toY, i)` for each edge of a trail on the canvas, which ends at its place number i; each goes the short way round the world. */
function eachEdge({ n, x, y }, { world, middle, left, top }, visit) {
  if (n < 2) return;
  // From the end, which is in the copy of the world that is on the screen, the turns go back to the beginning.
  let turn = Math.round(middle - x[n - 1]);
  for (let i = n - 1; i > 0; i--) turn += Math.round(x[i] - x[i - 1]);
  let [fromX, fromY] = [(x[0] + turn) * world - left, y[0] * world - top];
  for (let i = 1; i < n; i++) {
    turn -= Math.round(x[i] - x[i - 1]);
    const [toX, toY] = [(x[i] + turn) * world - left, y[i] * world - top];
    visit(fromX, fromY, toX, toY, i);
    [fromX, fromY] = [toX, toY];
  }
}
