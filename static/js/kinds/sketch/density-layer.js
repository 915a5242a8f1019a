// Draws the cells of a density, and contours of it, on a canvas below the objects. For Leaflet, latitude comes first.

import { cellAt, gridOf } from "./cells.js";
import { colourAt, css } from "./colours.js";
import { levelsOf, linesAt } from "./contours.js";

const PADDING = 0.1; // of the map's size, on every side
const CELL_ALPHA = 0.66;
const SHORTEST_PX = 110; // a contour of at least this length has a label
const LABEL_GAP_PX = 60;
const TURNS = [-360, 0, 360];

/**
 * Make the layer. It draws what `show({cells, scale, strength, contours, text})` gave it last: `contours` says whether there are
 * lines, and `text(value)` labels one; `show(null)` clears it.
 *
 * @param {Record<string, any>} L Leaflet
 * @param {Record<string, any>} parts `isDark()`; `palette()`, with `text` and `surface`
 */
export function createDensityLayer(L, parts) {
  const layer = new (L.Layer.extend(METHODS))();
  return Object.assign(layer, { L, ...parts, shown: null });
}

const METHODS = {
  onAdd(map) {
    map.createPane("density").style.zIndex = 405;
    this.canvas = this.L.DomUtil.create("canvas", "density leaflet-zoom-animated", map.getPane("density"));
    this.context = this.canvas.getContext("2d");
    this.draw();
  },

  onRemove() {
    this.canvas.remove();
  },

  getEvents() {
    return {
      zoomanim: ({ center, zoom }) => this.transform(center, zoom),
      moveend: this.draw,
      viewreset: this.draw,
      resize: this.draw,
    };
  },

  show(shown) {
    this.shown = shown;
    this.lines = shown?.contours && shown.cells.cell.length > 1 ? contoursOf(shown.cells) : [];
    this.draw();
  },

  /** Return the number of the cell at a point of the map's container; -1 if there is none. */
  hit(containerPoint) {
    if (!this.shown || this.shown.strength === 0) return -1;
    const { lat, lng } = this._map.containerPointToLatLng(containerPoint);
    return cellAt(this.shown.cells, lng, lat);
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
    this.L.DomUtil.setTransform(this.canvas, offset, scale);
  },

  draw() {
    if (!this._map) return;
    this.canvas.hidden = !this.shown;
    this.anchor();
    const { context, width, height, ratio } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    if (!this.shown) return;
    this.drawCells();
    this.drawLines();
  },

  anchor() {
    const map = this._map;
    const size = map.getSize();
    const pad = size.multiplyBy(PADDING).round();
    const corner = map.containerPointToLayerPoint(pad.multiplyBy(-1)).round();
    this.half = size.divideBy(2).add(pad);
    this.center = map.getCenter();
    this.zoom = map.getZoom();
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    [this.width, this.height] = [size.x + 2 * pad.x, size.y + 2 * pad.y];
    const [width, height] = [this.width, this.height].map((side) => Math.round(side * this.ratio));
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    Object.assign(this.canvas.style, { width: `${this.width}px`, height: `${this.height}px` });
    this.L.DomUtil.setTransform(this.canvas, corner, 1);
    // Web Mercator is separable: columns of longitudes and rows of latitudes have places of their own.
    this.x = (lon) => map.latLngToLayerPoint([0, lon]).x - corner.x;
    this.y = (lat) => map.latLngToLayerPoint([Math.min(Math.max(lat, -85.05), 85.05), 0]).y - corner.y;
  },

  drawCells() {
    const { cells, scale, strength } = this.shown;
    if (!scale) return;
    const dark = this.isDark();
    const [x, y] = [remembered(this.x), remembered(this.y)];
    this.context.globalAlpha = CELL_ALPHA * strength;
    for (const turn of TURNS) {
      if (x(180 + turn) < 0 || x(-180 + turn) > this.width) continue;
      cells.lo.forEach(([west, south], i) => {
        if (cells.value[i] === null) return;
        const [east, north] = cells.hi[i];
        const [left, right] = [Math.round(x(west + turn)), Math.round(x(east + turn))];
        const [top, bottom] = [Math.round(y(north)), Math.round(y(south))];
        if (right < 0 || left > this.width || bottom < 0 || top > this.height) return;
        this.context.fillStyle = css(colourAt(scale.share(cells.value[i]), dark));
        this.context.fillRect(left, top, Math.max(right - left, 1), Math.max(bottom - top, 1));
      });
    }
    this.context.globalAlpha = 1;
  },

  drawLines() {
    const { text, surface } = this.palette();
    const taken = [];
    for (const turn of TURNS) {
      if (this.x(180 + turn) < 0 || this.x(-180 + turn) > this.width) continue;
      for (const { level, places } of this.lines) {
        const points = places.map(([lon, lat]) => [this.x(lon + turn), this.y(lat)]);
        this.stroke(points, surface, 2.6, 0.55);
        this.stroke(points, text, 1.1, 0.9);
        this.label(points, this.shown.text(level), taken, [text, surface]);
      }
    }
  },

  /** Draw a line through the middles between its points, so that the steps of the grid do not show. */
  stroke(points, style, width, alpha) {
    const { context } = this;
    context.beginPath();
    context.moveTo(...points[0]);
    for (let i = 1; i + 1 < points.length; i++) {
      const [[x, y], [nextX, nextY]] = [points[i], points[i + 1]];
      context.quadraticCurveTo(x, y, (x + nextX) / 2, (y + nextY) / 2);
    }
    context.lineTo(...points.at(-1));
    Object.assign(context, { strokeStyle: style, lineWidth: width, globalAlpha: alpha, lineJoin: "round" });
    context.stroke();
    context.globalAlpha = 1;
  },

  /** Write a line's level at its middle, if it is long enough, in view, and not beside another label. */
  label(points, words, taken, [text, halo]) {
    const length = points.slice(1).reduce((sum, [x, y], i) => sum + Math.hypot(x - points[i][0], y - points[i][1]), 0);
    if (length < SHORTEST_PX) return;
    const at = points.length >> 1;
    const [x, y] = points[at];
    const inView = x > 30 && y > 15 && x < this.width - 30 && y < this.height - 15;
    if (!inView || taken.some(([otherX, otherY]) => Math.hypot(x - otherX, y - otherY) < LABEL_GAP_PX)) return;
    taken.push([x, y]);
    const { context } = this;
    const { fontFamily } = getComputedStyle(this._map.getContainer());
    Object.assign(context, {
      font: `600 11px ${fontFamily}`,
      textAlign: "center",
      textBaseline: "middle",
      lineWidth: 4,
      strokeStyle: halo,
      fillStyle: text,
    });
    context.strokeText(words, x, y);
    context.fillText(words, x, y);
  },
};

function contoursOf(cells) {
  const grid = gridOf(cells);
  const place = ([column, row]) => [between(grid.lon, column), between(grid.lat, row)];
  return levelsOf(grid.values).flatMap((level) =>
    linesAt(grid, level).map((line) => ({ level, places: line.map(place) })),
  );
}

function between(places, at) {
  const below = Math.floor(at);
  return at === below ? places[below] : places[below] + (at - below) * (places[below + 1] - places[below]);
}

/** Return a function of a number that computes each value once: many cells share their sides. */
function remembered(compute) {
  const known = new Map();
  return (value) => {
    if (!known.has(value)) known.set(value, compute(value));
    return known.get(value);
  };
}
