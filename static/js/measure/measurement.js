// What is measured: places on the map one after the other, perhaps closed to an area. Pure; longitude first.

import { length, square } from "../format.js";
import { filled, gettext, ngettext, number } from "../i18n.js";
import { inverse, path, ringArea } from "./geodesic.js";

const STEPS = [1, 64]; // the fewest and the most parts in which an edge is drawn
const STEP_M = 20_000; // in which the map's straight line and the geodesic hardly differ
const AREA_STEPS = 64; // in each edge, for the area

export class Measurement {
  constructor() {
    this.places = [];
    this.closed = false;
  }

  /** Add a place; the same one twice in a row is one. */
  add([lon, lat]) {
    const last = this.places.at(-1);
    if (last && last[0] === lon && last[1] === lat) return;
    this.places.push([lon, lat]);
  }

  /** Take the last step back: that the ring was closed, or the last place. */
  undo() {
    if (this.closed) this.closed = false;
    else this.places.pop();
  }

  /** Close the places to a ring, if they are at least three. */
  close() {
    this.closed = this.places.length > 2;
    return this.closed;
  }

  /** Return the edges as `{from, to, lengthM, bearingDeg}`; `pointer`, a place, has an edge to it. */
  edges(pointer = null) {
    const ends =
      pointer && !this.closed
        ? [...this.places, pointer]
        : this.closed
          ? [...this.places, this.places[0]]
          : this.places;
    return ends.slice(1).map((to, i) => ({ from: ends[i], to, ...inverse(ends[i], to) }));
  }

  /** Return the area in square metres; null unless the ring is closed. */
  area() {
    return this.closed
      ? ringArea(this.edges().flatMap(({ from, to }) => path(from, to, AREA_STEPS).slice(0, -1)))
      : null;
  }
}

/** Return the places by which an edge is drawn as a geodesic. */
export function drawnPath({ from, to, lengthM }) {
  return path(from, to, Math.min(Math.max(Math.ceil(lengthM / STEP_M), STEPS[0]), STEPS[1]));
}

/** Return an edge in words: "12.3 km, 45°". */
export function edgeText({ lengthM, bearingDeg }) {
  return `${length(lengthM)}, ${bearingText(bearingDeg)}`;
}

/** Return a bearing with three digits before the point, as navigators write it. */
export function bearingText(degrees) {
  const tenths = Math.round(degrees * 10) % 3600;
  return `${(tenths / 10).toFixed(1).padStart(5, "0")}\u00b0`;
}

/** Say what was measured, given the edges and the area. */
export function measuredText(edges, squareM) {
  if (edges.length === 0) return "";
  const total = edges.reduce((sum, { lengthM }) => sum + lengthM, 0);
  const several = ngettext("%(count)s part, %(length)s", "%(count)s parts, %(length)s", edges.length);
  const parts = [
    edges.length > 1 ? filled(several, { count: number(edges.length, 0), length: length(total) }) : length(total),
  ];
  if (squareM === null)
    parts.push(filled(gettext("bearing %(bearing)s"), { bearing: bearingText(edges.at(-1).bearingDeg) }));
  else parts.push(filled(gettext("area %(area)s"), { area: square(squareM) }));
  return parts.join(" \u00b7 ");
}
