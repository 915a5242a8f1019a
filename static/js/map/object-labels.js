// Names beside the symbols of objects, as many as there is room for. They are chosen a few times a second, and drawn in every frame.

import { title } from "../format.js";
import { Room, byRank, labelled } from "./labels.js";
import { NO_COLOUR } from "../objects/objects.js";

const FROM_ZOOM = 9;
const EVERY_MS = 300;
const MOST = 400;
const LONGEST = 24; // characters
const FONT_PX = 11;
const HEIGHT_PX = 14;
const GAP_PX = 3;
const HALO_PX = 3;
const RANKS = 5;

export class ObjectLabels {
  objects;
  names;
  widths;

  /** @param {Record<string, any>} objects of the store */
  constructor(objects) {
    Object.assign(this, { objects, shown: new Map(), names: new Map(), widths: new Map(), placedMs: -Infinity });
  }

  /** Return whether names are shown at a zoom. */
  static at(zoom) {
    return zoom >= FROM_ZOOM;
  }

  clear() {
    this.shown.clear();
    this.placedMs = -Infinity;
  }

  /** Return how long the present choice of names still holds, in milliseconds. */
  holdsMs(nowMs) {
    return this.placedMs + EVERY_MS - nowMs;
  }

  /**
   * Choose which objects have their names beside them.
   *
   * @param {CanvasRenderingContext2D} context measures the text
   * @param {Record<string, any>} visible `{n, slots, x, y}`
   * @param {Record<string, any>} view `width`, `height`, `radius` of a symbol, `selected` slot, `taken` boxes `[left, top, right, bottom]`,
   *   `family` of the font
   */
  place(context, visible, { width, height, radius, selected, taken, family }, nowMs) {
    this.font = `600 ${FONT_PX}px ${family}`;
    context.font = this.font;
    const room = new Room(width, height);
    for (const box of taken) room.add(...box);
    const before = this.shown;
    const { slots } = visible;
    const order = byRank(visible.n, RANKS, (i) => this.#rank(slots[i], selected));
    const widthOf = (i) => this.#width(context, this.#name(slots[i]));
    const sideOf = (i) => before.get(slots[i])?.side ?? 1;
    const found = labelled(visible, {
      room,
      radius,
      height: HEIGHT_PX,
      gap: GAP_PX,
      order,
      widthOf,
      sideOf,
      most: MOST,
    });
    this.shown = new Map(
      found.map(([i, side]) => [slots[i], { side, key: this.objects.keys[slots[i]], name: this.#name(slots[i]) }]),
    );
    for (const slot of this.names.keys()) if (!this.shown.has(slot)) this.names.delete(slot);
    this.placedMs = nowMs;
  }

  /** Draw the names where their objects are now. */
  draw(context, { n, slots, x, y }, { radius, text, halo }) {
    if (this.shown.size === 0) return;
    Object.assign(context, {
      font: this.font,
      textBaseline: "middle",
      lineJoin: "round",
      lineWidth: HALO_PX,
      strokeStyle: halo,
      fillStyle: text,
    });
    for (let i = 0; i < n; i++) {
      const label = this.shown.get(slots[i]);
      if (label?.key !== this.objects.keys[slots[i]]) continue; // the slot may belong to another object by now
      context.textAlign = label.side > 0 ? "left" : "right";
      const at = x[i] + label.side * (radius + GAP_PX);
      context.strokeText(label.name, at, y[i]);
      context.fillText(label.name, at, y[i]);
    }
  }

  /** Return the rank of an object: the selected one first, then those in an answer; among equals, those that have a label already. */
  #rank(slot, selected) {
    if (slot === selected) return 0;
    const later = this.shown.has(slot) ? 0 : 1;
    return (this.objects.colour[slot] === NO_COLOUR ? 3 : 1) + later;
  }

  #name(slot) {
    const text = this.objects.texts[slot];
    const known = this.names.get(slot);
    if (known?.text === text) return known.name;
    const name = shortened(title(this.objects.keys[slot], this.objects.properties(slot)));
    this.names.set(slot, { text, name });
    return name;
  }

  #width(context, name) {
    if (this.widths.size > 10 * MOST) this.widths.clear();
    if (!this.widths.has(name)) this.widths.set(name, context.measureText(name).width);
    return this.widths.get(name);
  }
}

function shortened(name) {
  return name.length > LONGEST ? `${name.slice(0, LONGEST - 1).trimEnd()}\u2026` : name;
}
