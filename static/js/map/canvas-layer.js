// The moving objects as one Leaflet layer with two canvases: trails, hulls, rings and names below, the objects above. The
// canvases are larger than the map, so that a short pan only moves them and draws nothing.

import { drawVectors, VECTORS_UP_TO } from "./course-vectors.js";
import { DRAWINGS } from "../kinds/registry.js";
import { mercatorX } from "../geometry.js";
import { Hulls } from "./hulls.js";
import { ObjectLabels } from "./object-labels.js";
import { NO_COLOUR } from "../objects/objects.js";
import { drawEncounters, drawPairs, drawPicked } from "./pair-lines.js";
import { SpriteSheet, spriteRow, spriteSize } from "./sprites.js";
import { drawTrails } from "./trail-lines.js";
import { USUAL_MIN } from "../objects/trails.js";

const PADDING = 0.15; // of the map's size, on every side
const TRAILS_UP_TO = 500;
const HIT_PX = 14;
const WORLD_PX = 256;
const RING_PX = 15;
const WATCHED_PX = 12;
const POINTED_PX = 19;
const FADE_MS = 250; // between two frames in which nothing but the lines of pairs changes
const OUTLINE_PX = 3; // from the edge of an object in a pair to its outline

/**
 * Make the layer.
 *
 * @param {Record<string, any>} L Leaflet
 * @param {Record<string, any>} store read only
 * @param {Record<string, any>} options `palette()`, `now()`, `hidden(stream)`, true for streams that are switched off, `veil(stream)`, how
 *   faintly a density has the objects of a stream drawn that are in no answer (0 as always, 1 faded, 2 not at all), and
 *   `taken()`, boxes `[left, top, right, bottom]` in layer points, in which no name may lie, and `marks()`, `{pointed, watched}`:
 *   the slot that is pointed at in the table of objects, and those that are watched; `colourBy`, a ColourBy, and `paint()`, the colours
 *   of its classes; `filter`, a DisplayFilter
 */
export function createObjectLayer(L, store, { palette, now, hidden, veil, taken, marks, colourBy, paint, filter }) {
  const layer = new (L.Layer.extend(METHODS))();
  Object.assign(layer, { L, store, palette, now, hidden, veil, taken, marks, colourBy, paint, filter, names: true });
  Object.assign(layer, { trailMin: USUAL_MIN, vectorMin: 0 }); // how long trails are, and the lines ahead; 0 without
  layer.hulls = new Hulls(store.objects);
  layer.labels = new ObjectLabels(store.objects);
  layer.visible = { n: 0, slots: new Int32Array(0), x: new Float32Array(0), y: new Float32Array(0) };
  layer.drawMs = 0;
  return layer;
}

const METHODS = {
  onAdd(map) {
    const canvas = () => this.L.DomUtil.create("canvas", "objects leaflet-zoom-animated", map.getPane("objects"));
    this.below = canvas();
    this.canvas = canvas();
    this.lines = this.below.getContext("2d");
    // The canvas stays in main memory rather than on a graphics card, since every frame is written into it pixel by pixel.
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.reset();
  },

  onRemove() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.placing);
    clearTimeout(this.fading);
    this.below.remove();
    this.canvas.remove();
  },

  getEvents() {
    return {
      zoomstart: () => (this.zooming = true),
      zoomanim: ({ center, zoom }) => this.transform(center, zoom),
      zoom: () => this.zooming && this.transform(this._map.getCenter(), this._map.getZoom()),
      zoomend: () => {
        this.zooming = false;
        this.anchored = false;
        this.invalidate();
      },
      move: this.moved,
      movestart: () => (this.panning = true),
      moveend: () => {
        this.panning = false;
        this.moved();
      },
      resize: this.reset,
      viewreset: this.reset,
    };
  },

  /** Forget what depends on the size, the screen and the colours. */
  reset() {
    this.anchored = false;
    this.sheet = null;
    this.invalidate();
  },

  /** Draw before the next frame. Call it after any change of what is shown. */
  invalidate() {
    this.frame ??= requestAnimationFrame((time) => this.onFrame(time));
  },

  moved() {
    if (this.zooming || !this.anchored) return;
    const corner = this._map.layerPointToContainerPoint(this.corner);
    const size = this._map.getSize();
    if (corner.x <= 0 && corner.y <= 0 && corner.x + this.width >= size.x && corner.y + this.height >= size.y) return;
    this.anchored = false;
    this.invalidate();
  },

  onFrame(time) {
    this.frame = null;
    if (!this._map || this.zooming) return;
    // During a pan, following the hand comes first: drawing new data may take a third of the time. A bare edge is drawn at once.
    if (this.panning && this.anchored && time - this.drawnAt < 3 * this.drawMs) return this.invalidate();
    this.draw();
    this.drawnAt = time;
    // The next frame comes only when this one is on the screen, so the time includes that of rasterising.
    requestAnimationFrame((next) => (this.drawMs = Math.min(next - time, 100)));
  },

  /** Follow a zoom animation by scaling what is drawn. */
  transform(center, zoom) {
    if (!this.center) return;
    const map = this._map;
    const scale = map.getZoomScale(zoom, this.zoom);
    const offset = this.half
      .multiplyBy(-scale)
      .add(map.project(this.center, zoom))
      .subtract(map._getNewPixelOrigin(center, zoom));
    for (const canvas of [this.below, this.canvas]) this.L.DomUtil.setTransform(canvas, offset, scale);
  },

  anchor() {
    const map = this._map;
    const size = map.getSize();
    const pad = size.multiplyBy(PADDING).round();
    this.corner = map.containerPointToLayerPoint(pad.multiplyBy(-1)).round();
    this.half = size.divideBy(2).add(pad);
    this.center = map.getCenter();
    this.zoom = map.getZoom();
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = size.x + 2 * pad.x;
    this.height = size.y + 2 * pad.y;
    const [width, height] = [Math.round(this.width * this.ratio), Math.round(this.height * this.ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height || !this.image) {
      for (const canvas of [this.below, this.canvas]) {
        Object.assign(canvas, { width, height });
        Object.assign(canvas.style, { width: `${this.width}px`, height: `${this.height}px` });
      }
      this.image = this.context.createImageData(width, height);
      this.pixels = { width, height, pixels: new Uint32Array(this.image.data.buffer) };
    }
    this.anchored = true;
  },

  draw() {
    const first = !this.anchored;
    if (first) this.anchor();
    const size = spriteSize(this.zoom);
    if (this.sheet?.size !== size || this.sheet.ratio !== this.ratio) {
      this.sheet = new SpriteSheet(size, this.ratio, this.palette(), this.paint());
      this.sheet.size = size;
    }
    this.staleBefore = this.store.staleBefore(this.now());
    this.colourBy.begin(this.now());
    this.cull();
    this.hulls.place(this.visible, { world: WORLD_PX * 2 ** this.zoom, size });
    this.placeNames(first);
    this.drawLines();
    this.pixels.pixels.fill(0);
    this.drawSprites();
    this.context.putImageData(this.image, 0, 0);
    if (first) for (const canvas of [this.below, this.canvas]) this.L.DomUtil.setTransform(canvas, this.corner, 1);
  },

  /** Find the objects on the canvas and their places on it, in CSS pixels. */
  cull() {
    const { objects } = this.store;
    const { visible } = this;
    if (visible.slots.length < objects.size) {
      visible.slots = new Int32Array(objects.capacity);
      visible.x = new Float32Array(objects.capacity);
      visible.y = new Float32Array(objects.capacity);
    }
    const off = new Set([...this.store.streams.keys()].filter(this.hidden));
    this.veiled = new Map(
      [...this.store.streams.keys()]
        .map((name) => /** @type {[string, number]} */ ([name, this.veil(name)]))
        .filter(([, how]) => how > 0),
    );
    const selected = this.store.selectedSlots();
    const view = this.place();
    const { x, y, alive, streams, colour } = objects;
    const filtered = this.filter.active;
    let n = 0;
    for (let slot = 0; slot < objects.size; slot++) {
      if (!alive[slot] || !objects.keys[slot]) continue; // an alarm about whole answers has a place, but no object
      // The copy of the world that is nearest to the middle of the map.
      const px = (x[slot] + Math.round(view.middle - x[slot])) * view.world - view.left;
      const py = y[slot] * view.world - view.top;
      if (!(px > -20 && py > -20 && px < this.width + 20 && py < this.height + 20)) continue;
      if (off.size > 0 && off.has(streams[slot])) continue;
      if (filtered && !this.filter.passes(slot) && !selected.includes(slot)) continue;
      const behind = this.veiled.size > 0 && this.veiled.get(streams[slot]) === 2 && colour[slot] === NO_COLOUR;
      if (behind && !selected.includes(slot)) continue;
      visible.slots[n] = slot;
      visible.x[n] = px;
      visible.y[n++] = py;
    }
    visible.n = n;
  },

  place() {
    const origin = this._map.getPixelOrigin();
    return {
      world: WORLD_PX * 2 ** this.zoom,
      middle: mercatorX(this.center.lng),
      left: origin.x + this.corner.x,
      top: origin.y + this.corner.y,
    };
  },

  /** Choose the names that have room: at once if the canvas has moved and no pan goes on, else a few times a second. */
  placeNames(first) {
    const { labels } = this;
    if (!this.names || !ObjectLabels.at(this.zoom)) return labels.clear();
    const nowMs = performance.now();
    const waitMs = first && !this.panning ? 0 : labels.holdsMs(nowMs);
    if (waitMs > 0) return this.later(waitMs);
    const { x, y } = this.corner;
    const taken = this.taken().map(([left, top, right, bottom]) => [left - x, top - y, right - x, bottom - y]);
    const { fontFamily: family } = getComputedStyle(this._map.getContainer());
    const { width, height } = this;
    const view = {
      width,
      height,
      radius: spriteSize(this.zoom) / 2,
      selected: this.store.selectedSlot(),
      taken,
      family,
    };
    labels.place(this.lines, this.visible, view, nowMs);
  },

  later(ms) {
    this.placing ??= setTimeout(() => {
      this.placing = null;
      this.invalidate();
    }, ms);
  },

  drawSprites() {
    const { objects } = this.store;
    const { slots, n } = this.visible;
    const [answered, urgent] = [[], []];
    for (let i = 0; i < n; i++) {
      if (objects.isUrgent(slots[i])) urgent.push(i);
      else if (objects.colour[slots[i]] === NO_COLOUR) this.sprite(i);
      else answered.push(i);
    }
    for (const i of [...answered, ...urgent]) this.sprite(i);
  },

  sprite(i) {
    if (this.hulls.shown.has(i)) return;
    const { objects } = this.store;
    const { sheet, ratio, visible, colourBy } = this;
    const slot = visible.slots[i];
    const shade = colourBy.active ? colourBy.classOf(slot) : -1;
    const row = spriteRow(objects.kind[slot], objects.colour[slot], this.faint(slot), shade);
    sheet.draw(
      this.pixels,
      row,
      objects.heading[slot],
      Math.round(visible.x[i] * ratio),
      Math.round(visible.y[i] * ratio),
    );
  },

  stale(slot) {
    const { timeMs, streams } = this.store.objects;
    return timeMs[slot] < this.staleBefore.get(streams[slot]);
  },

  faint(slot) {
    const { streams, colour } = this.store.objects;
    return this.stale(slot) || (this.veiled.size > 0 && this.veiled.has(streams[slot]) && colour[slot] === NO_COLOUR);
  },

  drawLines() {
    const selected = this.store.selectedSlots();
    const trails = this.trailSlots(selected);
    const vectors = this.vectorMin > 0 && (this.visible.n <= VECTORS_UP_TO || selected.length > 0);
    const drawings = DRAWINGS.map(({ find, draw }) => ({ draw, found: find(this.store, this.visible) })).filter(
      ({ found }) => found.length > 0,
    );
    const outlined = this.outlined();
    const lasting = this.lasting();
    const lines = lasting.length > 0 || this.store.picked !== null || this.store.told.fresh(this.now());
    const { pointed, watched } = this.marks();
    const marked = watched.length > 0 || pointed !== undefined;
    const drawn = [
      drawings.length,
      trails.length,
      selected.length,
      outlined.size,
      this.labels.shown.size,
      this.hulls.shown.size,
    ].some((some) => some > 0);
    const empty = !drawn && !vectors && !lines && !marked;
    this.below.hidden = empty; // the browser need not compose an empty canvas
    if (empty) return;
    this.lines.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.lines.clearRect(0, 0, this.width, this.height);
    this.drawLook(trails, vectors, selected);
    this.drawKinds(drawings);
    if (lines) this.drawPairs(lasting);
    this.drawOutlines(outlined);
    if (watched.length > 0) this.drawRings(new Set(watched), WATCHED_PX, this.palette().watched);
    for (const slot of selected) this.drawRings(new Set([slot]), RING_PX, this.palette().accent);
    if (pointed !== undefined) this.drawRings(new Set([pointed]), POINTED_PX, this.palette().accent);
    const { text, surface: halo } = this.palette();
    this.labels.draw(this.lines, this.visible, { radius: spriteSize(this.zoom) / 2, text, halo });
  },

  /** Draw what kinds of queries show of their answers beside the objects. */
  drawKinds(drawings) {
    const { queries: colours, edge, surface } = this.palette();
    const { store, visible, width, height } = this;
    const how = { view: this.place(), width, height, objects: store.objects, visible, colours, edge, surface };
    for (const { draw, found } of drawings) draw(this.lines, found, how);
  },

  /** Return the encounters of the shown queries that last: `[[colour, encounters, query], ...]`. */
  lasting() {
    const { encounters, queries } = this.store;
    const found = [...encounters].map(([number, lasting]) => [queries.get(number), lasting]);
    return found
      .filter(([query, lasting]) => query?.shown && lasting.size > 0)
      .map(([query, lasting]) => [query.colour, lasting.values(), query]);
  },

  /** Return where the two objects of an encounter are now; where they were nearest, if they are not on the map. */
  placesOf({ plan }, found) {
    const { objects } = this.store;
    const at = (stream, key, place) => {
      const slot = objects.slot(stream, key);
      return slot === undefined ? place : [objects.lon[slot], objects.lat[slot]];
    };
    return [
      at(plan.stream, found.key, [found.lon, found.lat]),
      at(plan.join.stream, found.partnerKey, found.partnerPlace),
    ];
  },

  /** Draw the encounters that last; the pairs that were told lately, again until they have faded; and the pair that was picked. */
  drawPairs(lasting) {
    const { told, queries, picked } = this.store;
    const colours = this.palette();
    const view = this.place();
    const colourOf = (number) => (queries.get(number)?.shown ? colours.queries[queries.get(number).colour] : null);
    for (const [colour, encounters, query] of lasting) {
      const placesOf = (found) => this.placesOf(query, found);
      drawEncounters(this.lines, encounters, { view, colour: colours.queries[colour], edge: colours.edge, placesOf });
    }
    drawPairs(this.lines, told, { view, nowMs: this.now(), colourOf });
    if (picked) drawPicked(this.lines, picked, { view, colour: colours.queries[picked.colour], edge: colours.edge });
    if (!told.fresh(this.now())) return;
    this.fading ??= setTimeout(() => {
      this.fading = null;
      this.invalidate();
    }, FADE_MS);
  },

  /** Return the indices in `visible` of the objects in a pair, by the colour of their query. */
  outlined() {
    const { paired, colour } = this.store.objects;
    const byColour = new Map();
    for (let i = 0; i < this.visible.n; i++) {
      const slot = this.visible.slots[i];
      if (!paired[slot]) continue;
      if (!byColour.has(colour[slot])) byColour.set(colour[slot], []);
      byColour.get(colour[slot]).push(i);
    }
    return byColour;
  },

  drawOutlines(outlined) {
    const { queries, edge } = this.palette();
    const radius = spriteSize(this.zoom) / 2 + OUTLINE_PX;
    for (const [colour, list] of outlined) {
      this.lines.beginPath();
      for (const i of list) {
        this.lines.moveTo(this.visible.x[i] + radius, this.visible.y[i]);
        this.lines.arc(this.visible.x[i], this.visible.y[i], radius, 0, 2 * Math.PI);
      }
      for (const [width, style] of [
        [4.5, edge],
        [2, queries[colour]],
      ]) {
        this.lines.lineWidth = width;
        this.lines.strokeStyle = style;
        this.lines.stroke();
      }
    }
  },

  /** Return the objects that have a trail: all that are on the canvas unless these are many, and the selected ones. */
  trailSlots(selected) {
    const { slots, n } = this.visible;
    if (this.trailMin === 0) return [];
    return n < TRAILS_UP_TO
      ? [...slots.subarray(0, n)]
      : selected.filter((slot) => slots.subarray(0, n).includes(slot));
  },

  /** Draw trails, the lines ahead, and hulls. */
  drawLook(slots, vectors, selected) {
    const { objects } = this.store;
    const { visible, colourBy } = this;
    const [view, colours, paint] = [this.place(), this.palette(), this.paint()];
    if (slots.length > 0)
      drawTrails(this.lines, {
        objects,
        slots,
        selected,
        view,
        colours,
        lengthMs: 60_000 * this.trailMin,
        colourBy,
        paint,
      });
    if (vectors) {
      const shown = (slot) => visible.n <= VECTORS_UP_TO || selected.includes(slot);
      const seconds = 60 * this.vectorMin;
      drawVectors(this.lines, {
        objects,
        visible,
        world: view.world,
        seconds,
        stale: (slot) => this.stale(slot),
        shown,
        line: colours.text,
        edge: colours.surface,
      });
    }
    this.hulls.draw(this.lines, (i) => {
      const slot = visible.slots[i];
      const query = objects.colour[slot] === NO_COLOUR ? null : colours.queries[objects.colour[slot]];
      const kind = colours.kinds[objects.kind[slot]];
      const fill = colourBy.active ? paint.fills[colourBy.classOf(slot)] : (query ?? kind);
      return {
        fill,
        line: query ?? (colourBy.active ? paint.edge : kind),
        width: query ? 2.4 : 1.4,
        alpha: this.faint(slot) ? 0.5 : 1,
      };
    });
  },

  /** Draw a ring around each of some objects that are on the canvas. */
  drawRings(marked, radius, colour) {
    const { slots, x, y, n } = this.visible;
    const { edge } = this.palette();
    for (let i = 0; i < n; i++) {
      if (!marked.has(slots[i])) continue;
      for (const [width, style] of [
        [4.5, edge],
        [2, colour],
      ]) {
        this.lines.beginPath();
        this.lines.arc(x[i], y[i], radius, 0, 2 * Math.PI);
        this.lines.lineWidth = width;
        this.lines.strokeStyle = style;
        this.lines.stroke();
      }
    }
  },

  /** Return the slot of the object nearest to a point of the map's container; undefined if none is near. */
  hit(containerPoint) {
    if (!this.anchored) return undefined;
    const corner = this._map.layerPointToContainerPoint(this.corner);
    const [px, py] = [containerPoint.x - corner.x, containerPoint.y - corner.y];
    const { slots, x, y, n } = this.visible;
    let best = HIT_PX * HIT_PX;
    let found = slots[this.hulls.at(px, py)];
    for (let i = 0; i < n; i++) {
      const d = (x[i] - px) ** 2 + (y[i] - py) ** 2;
      if (d <= best && this.store.objects.alive[slots[i]]) {
        best = d;
        found = slots[i];
      }
    }
    return found;
  },
};
