// The sprites: every shape at every heading, drawn once and kept as pixels. A row has one kind, one colour, perhaps
// one class, and is stale or not. Without a graphics card, `drawImage` took nearly all of the time with ten thousand objects (11 frames/s);
// copying only the pixels that are not transparent gives 50 frames/s.

import { HEADINGS } from "../geometry.js";
import { KINDS } from "../objects/object-kinds.js";
import { blit, pixelsOf } from "./pixels.js";
import { CLASSES } from "../symbology/classes.js";

const COLOURS = 9; // the colour of the kind, and the colours of the queries
const STALE_ALPHA = 0.38;
const MARGIN = 3;

// Right halves of the outlines, pointing north, in units of half a sprite.
const OUTLINES = {
  ship: [
    [0, -1],
    [0.32, -0.62],
    [0.44, -0.2],
    [0.44, 0.86],
    [0.3, 0.96],
  ],
  aircraft: [
    [0, -1],
    [0.13, -0.8],
    [0.15, -0.3],
    [1, 0.26],
    [1, 0.48],
    [0.15, 0.2],
    [0.11, 0.64],
    [0.42, 0.86],
    [0.42, 1],
    [0, 0.9],
  ],
  bus: [
    [0, -1],
    [0.4, -0.5],
    [0.62, -0.1],
    [0.6, 0.32],
    [0.4, 0.62],
    [0, 0.72],
  ],
  station: [
    [0, -0.95],
    [0.16, -0.4],
    [0.62, 0.8],
    [0, 0.8],
  ],
  aid: [
    [0, -1],
    [0.26, -0.06],
    [0.8, 0.26],
    [0.56, 0.78],
    [0, 0.78],
  ],
  craft: [
    [0, -0.72],
    [0.3, -0.3],
    [0.34, 0],
    [0.34, 0.56],
    [0.24, 0.66],
  ],
  radio: round(0.46),
  beacon: round(0.92),
  "beacon-test": round(0.92),
  other: [
    [0, -0.85],
    [0.6, 0],
    [0, 0.85],
  ],
};

// A beacon is a circle with a cross (IMO SN.1/Circ.243/Rev.2); one under test is hollow.
const CROSSED = { beacon: 0.52, "beacon-test": 0.52 };
const HOLLOW = ["beacon-test"];

/** Return the right half of a circle. */
function round(radius) {
  const steps = 12;
  return Array.from({ length: steps + 1 }, (_, i) => {
    const angle = (i / steps) * Math.PI;
    return [radius * Math.sin(angle), -radius * Math.cos(angle)];
  });
}

/** Diameter of a sprite in CSS pixels, by zoom: small ones leave a crowded lane readable. */
export function spriteSize(zoom) {
  return zoom < 4 ? 8 : zoom < 6 ? 10 : zoom < 7 ? 13 : zoom < 9 ? 17 : 21;
}

/** Return the row of the sheet for a kind, a colour, whether the object is stale, and its class, -1 if objects are not coloured by classes. */
export function spriteRow(kind, colour, stale, shade = -1) {
  return (((shade + 1) * KINDS.length + kind) * COLOURS + colour + 1) * 2 + (stale ? 1 : 0);
}

export class SpriteSheet {
  /**
   * @param {number} size of a sprite in CSS pixels
   * @param {number} ratio device pixels to a CSS pixel
   * @param {Record<string, any>} palette `{kinds: [css], queries: [css], edge: css, surface: css}`
   * @param {Record<string, any>} paint of classes, `{fills: [css], edge: css}`
   */
  constructor(size, ratio, palette, paint) {
    this.radius = (size * ratio) / 2;
    this.ratio = ratio;
    this.palette = palette;
    this.paint = paint;
    this.cell = Math.ceil(size * ratio) + 2 * Math.ceil(MARGIN * ratio);
    const canvas = document.createElement("canvas");
    canvas.width = HEADINGS * this.cell;
    canvas.height = this.cell;
    this.context = canvas.getContext("2d", { willReadFrequently: true });
    this.rows = new Array((CLASSES + 1) * KINDS.length * COLOURS * 2).fill(null);
  }

  /** Copy a sprite into a frame, with its middle on the device pixel (x, y). */
  draw(frame, row, heading, x, y) {
    this.rows[row] ??= this.#row(row);
    blit(frame, this.rows[row][heading], x - (this.cell >> 1), y - (this.cell >> 1));
  }

  #row(row) {
    const { context, cell } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, HEADINGS * cell, cell);
    const kind = (((row >> 1) / COLOURS) | 0) % KINDS.length;
    const shade = (((row >> 1) / COLOURS / KINDS.length) | 0) - 1;
    const colour = ((row >> 1) % COLOURS) - 1;
    context.globalAlpha = row & 1 ? STALE_ALPHA : 1;
    for (let heading = 0; heading < HEADINGS; heading++) {
      context.setTransform(1, 0, 0, 1, (heading + 0.5) * cell, 0.5 * cell);
      context.rotate((heading / HEADINGS) * 2 * Math.PI);
      this.#shape(KINDS[kind], colour, shade);
    }
    return Array.from({ length: HEADINGS }, (_, heading) =>
      pixelsOf(context.getImageData(heading * cell, 0, cell, cell)),
    );
  }

  #shape(kind, colour, shade) {
    const { context, radius, palette, paint } = this;
    const answered = colour >= 0;
    const scale = radius * (answered ? 1 : 0.9);
    const right = OUTLINES[kind];
    const left = right.map(([x, y]) => [-x, y]).reverse();
    const edge = shade < 0 ? palette.edge : paint.edge;
    const plain = answered ? palette.queries[colour] : palette.kinds[KINDS.indexOf(kind)];
    // An answer is the outline; with classes it is wider, since the colour within is that of the class.
    const outlines = answered
      ? [
          [shade < 0 ? 2.6 : 4.4, palette.queries[colour]],
          [shade < 0 ? 1 : 1.4, edge],
        ]
      : [[1.6, edge]];
    context.beginPath();
    for (const [x, y] of [...right, ...left]) context.lineTo(x * scale, y * scale);
    context.closePath();
    context.lineJoin = "round";
    for (const [width, style] of outlines) this.#stroke(style, width);
    if (shade < 0 && HOLLOW.includes(kind)) this.#hollow(palette.surface, plain, CROSSED[kind] * scale);
    else this.#filled(shade < 0 ? plain : paint.fills[shade], edge, CROSSED[kind] * scale);
  }

  #filled(fill, edge, arm) {
    this.context.fillStyle = fill;
    this.context.fill();
    if (arm) this.#cross(arm, edge);
  }

  #hollow(fill, line, arm) {
    this.context.fillStyle = fill;
    this.context.fill();
    this.#stroke(line, 1.6);
    this.#cross(arm, line);
  }

  #stroke(style, width) {
    this.context.lineWidth = width * this.ratio;
    this.context.strokeStyle = style;
    this.context.stroke();
  }

  #cross(arm, style) {
    const { context } = this;
    context.beginPath();
    for (const side of [-1, 1]) {
      context.moveTo(-arm, -side * arm);
      context.lineTo(arm, side * arm);
    }
    this.#stroke(style, 1.8);
  }
}
