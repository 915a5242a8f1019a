// The outlines of ships, to scale and turned by their heading, where the map is so large that they are larger than a symbol.

import { mercatorPerMetre } from "../geometry.js";
import { within } from "./labels.js";
import { numberOf } from "../objects/objects.js";

const DEG = Math.PI / 180;
const LONGER = 1.4; // times the length of a symbol
const LONGEST_M = 600;
const BOW = 0.2; // of the length, in which the sides come together
const BESIDE = 0.55; // of half the width, where the bow's shoulders are
const SIDES = ["to_bow_m", "to_stern_m", "to_port_m", "to_starboard_m"].map((name) => `"${name}":`);

/**
 * Return how far a hull reaches from where its object reports, `{bow, stern, port, starboard}` in metres, from a JSON text of properties;
 * null unless its length and its width are known. Without the distances from the antenna, it is in the middle.
 */
export function hullOf(text) {
  const [bow, stern, port, starboard] = SIDES.map((written) => numberOf(text, written));
  // ITU-R M.1371: a bow and a port of 0 say that it is not known where the antenna is.
  if (bow + port > 0 && bow + stern > 0 && port + starboard > 0) return sound({ bow, stern, port, starboard });
  const [length, width] = [numberOf(text, '"length_m":'), numberOf(text, '"width_m":')];
  return length > 0 && width > 0
    ? sound({ bow: length / 2, stern: length / 2, port: width / 2, starboard: width / 2 })
    : null;
}

function sound(hull) {
  return hull.bow + hull.stern <= LONGEST_M && hull.port + hull.starboard < hull.bow + hull.stern ? hull : null;
}

/** Return the heading of an object, or else its course, in degrees; NaN without either. A hull points where the bow does. */
export function headingOf(text, course) {
  const heading = numberOf(text, '"heading_deg":');
  return Number.isNaN(heading) ? course : heading;
}

/** Return the corners of a hull in pixels around its object, given its heading and the pixels to a metre. */
export function cornersOf({ bow, stern, port, starboard }, headingDeg, scale) {
  const shoulder = bow - BOW * (bow + stern);
  const [middle, half] = [(starboard - port) / 2, (starboard + port) / 2];
  const outline = [
    [middle, bow],
    [middle + BESIDE * half, bow - (BOW / 3) * (bow + stern)],
    [starboard, shoulder],
    [starboard, -stern],
    [-port, -stern],
    [-port, shoulder],
    [middle - BESIDE * half, bow - (BOW / 3) * (bow + stern)],
  ];
  const [sine, cosine] = [Math.sin(headingDeg * DEG), Math.cos(headingDeg * DEG)];
  return outline.map(([right, ahead]) => [
    scale * (right * cosine + ahead * sine),
    scale * (right * sine - ahead * cosine),
  ]);
}

/** The hulls of the objects in view. */
export class Hulls {
  objects;
  texts;
  known;
  shown;

  /** @param {Record<string, any>} objects of the store */
  constructor(objects) {
    Object.assign(this, { objects, texts: [], known: [], shown: new Map() });
  }

  /** Find the objects on the canvas whose hulls are longer than symbols of a size: their corners on the canvas, by number in `visible`. */
  place({ n, slots, x, y }, { world, size }) {
    this.shown.clear();
    if (n === 0 || mercatorPerMetre(this.objects.y[slots[0]]) * world * LONGEST_M < LONGER * size) return;
    for (let i = 0; i < n; i++) {
      const slot = slots[i];
      const hull = this.#hull(slot);
      if (!hull) continue;
      const scale = mercatorPerMetre(this.objects.y[slot]) * world;
      const heading = headingOf(this.objects.texts[slot], this.objects.course[slot]);
      if (scale * (hull.bow + hull.stern) < LONGER * size || Number.isNaN(heading)) continue;
      this.shown.set(
        i,
        cornersOf(hull, heading, scale).map(([right, down]) => [x[i] + right, y[i] + down]),
      );
    }
  }

  /** Return the number in `visible` of the object whose hull contains a point of the canvas; undefined if none does. */
  at(x, y) {
    for (const [i, corners] of this.shown) if (within(corners, [x, y])) return i;
    return undefined;
  }

  /** Draw the hulls; `styleOf(i)` returns `{fill, line, width, alpha}`. */
  draw(context, styleOf) {
    context.lineJoin = "round";
    for (const [i, corners] of this.shown) {
      const { fill, line, width, alpha } = styleOf(i);
      context.beginPath();
      for (const corner of corners) context.lineTo(...corner);
      context.closePath();
      context.globalAlpha = 0.45 * alpha;
      context.fillStyle = fill;
      context.fill();
      context.globalAlpha = alpha;
      context.lineWidth = width;
      context.strokeStyle = line;
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  #hull(slot) {
    const text = this.objects.texts[slot];
    if (this.texts[slot] !== text) {
      this.texts[slot] = text;
      this.known[slot] = hullOf(text);
    }
    return this.known[slot];
  }
}
