// Draws the rows of an answer from stored tables on one canvas: points, shapes, the track of each key, lines between pairs.

import { turnOf } from "../layers/features.js";
import { turnTowards } from "../geometry.js";
import { isPoint, partnersOf, placeOf, tracksOf } from "./history.js";
import { pageEvents } from "../page-events.js";

const HIT_PX = 4;
const POINT_PX = 3.5;
const CROWDED_ROWS = 300; // with more rows, points are smaller, so that tracks can be seen
const CROWDED_PX = 2;
const SELECTED_PX = 8;

export class HistoryLayer {
  L;
  map;
  palette;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {(...values: any[]) => any} palette returns the colours
   */
  constructor(L, map, palette) {
    Object.assign(this, { L, map, palette });
    this.rows = [];
    this.box = null;
    this.selected = null;
    this.paths = []; // for each row
    this.pane = map.createPane("history");
    this.pane.style.zIndex = 445;
    this.renderer = L.canvas({ pane: "history", padding: 0.25, tolerance: HIT_PX });
    this.group = L.layerGroup().addTo(map);
    this.ring = L.layerGroup().addTo(map);
    pageEvents.on("theme", () => this.#recolour());
  }

  /** Draw rows, and the rectangle of the question, if it has one. */
  show(rows, box = null) {
    Object.assign(this, { rows, box, selected: null });
    this.pane.dataset.of = document.body.dataset.tab ?? ""; // the style sheet hides it while another tab is shown
    this.#draw();
  }

  clear() {
    this.show([]);
  }

  #recolour() {
    this.#draw();
    this.select(this.selected);
  }

  /** The colour of a key's rows. */
  colourOf(key) {
    return this.colours.get(key);
  }

  /** Put a ring around a row's place; null for none. */
  select(index) {
    this.selected = index;
    this.ring.clearLayers();
    const row = this.rows[index];
    if (!row || !isPoint(row)) return;
    const options = { ...this.#options(this.palette().accent), radius: SELECTED_PX, weight: 3, fill: false };
    this.L.circleMarker(this.#latLng(placeOf(row)), options).addTo(this.ring);
  }

  /** Return the number of the row under a point of the map's container, the last of several; undefined if there is none. */
  hit(containerPoint) {
    if (this.rows.length === 0 || this.pane.dataset.of !== (document.body.dataset.tab ?? "")) return undefined;
    const point = this.map.containerPointToLayerPoint(containerPoint);
    for (let i = this.paths.length - 1; i >= 0; i--) {
      if (this.paths[i].some((path) => path._pxBounds && path._containsPoint(point))) return i;
    }
    return undefined;
  }

  #draw() {
    const { L } = this;
    this.group.clearLayers();
    this.ring.clearLayers();
    const keys = [...new Set(this.rows.map(({ key }) => key))];
    const { queries, accent } = this.palette();
    this.colours = new Map(keys.map((key, i) => [key, queries[i % queries.length]]));
    if (this.box)
      L.polyline(this.#corners(this.box), { ...this.#options(accent), weight: 1.5, dashArray: "4 5" }).addTo(
        this.group,
      );
    for (const [key, track] of tracksOf(this.rows)) {
      const turn = turnTowards(track[0][0], this.map.getCenter().lng);
      const line = track.map(([lon, lat]) => L.latLng(lat, lon + turn));
      L.polyline(line, { ...this.#options(this.colours.get(key)), weight: 2, opacity: 0.7 }).addTo(this.group);
    }
    for (const partner of partnersOf(this.rows)) this.#shape(partner, accent, 0.1);
    this.paths = this.rows.map((row) => this.#row(row));
  }

  /** Draw a row. Return the paths with which the pointer hits it. */
  #row(row) {
    const colour = this.colours.get(row.key);
    const paths = this.#shape(row, colour);
    if (!row.partner || !isPoint(row) || !isPoint(row.partner)) return paths;
    const [from, to] = [placeOf(row), placeOf(row.partner)];
    if ([...from, ...to].every(Number.isFinite)) {
      const line = [this.#latLng(from), this.#latLng([to[0] + turnTowards(to[0], from[0]), to[1]])];
      this.L.polyline(line, { ...this.#options(colour), weight: 1, dashArray: "3 4" }).addTo(this.group);
    }
    return paths;
  }

  #shape(row, colour, fillOpacity = 0.9) {
    const { L } = this;
    const options = { ...this.#options(colour), weight: 1.5, fillOpacity };
    const place = placeOf(row);
    if (isPoint(row)) {
      if (!place.every(Number.isFinite)) return [];
      return [L.circleMarker(this.#latLng(place), { ...options, radius: this.#radius }).addTo(this.group)];
    }
    if (!row.geometry) return this.#rectangle(row, options);
    const turn = turnOf(row.geometry, this.map.getCenter().lng);
    const shape = L.GeoJSON.geometryToLayer(
      { type: "Feature", geometry: row.geometry },
      {
        coordsToLatLng: ([lon, lat]) => L.latLng(lat, lon + turn),
        pointToLayer: (_, at) => L.circleMarker(at, { ...options, radius: this.#radius }),
      },
    );
    const paths = [];
    const take = (layer) => (layer.eachLayer ? layer.eachLayer(take) : paths.push(layer));
    take(shape);
    for (const path of paths)
      path.setStyle({ ...options, fill: path instanceof L.Polygon, fillOpacity: Math.min(fillOpacity, 0.15) });
    for (const path of paths)
      Object.assign(path.options, { renderer: this.renderer, pane: "history", interactive: false });
    return paths.map((path) => path.addTo(this.group));
  }

  get #radius() {
    return this.rows.length > CROWDED_ROWS ? CROWDED_PX : POINT_PX;
  }

  #rectangle({ lo, hi }, options) {
    const sides = [lo[0], lo[1], hi[0], hi[1]];
    if (!sides.every(Number.isFinite)) return [];
    return [this.L.polygon(this.#corners({ lo, hi }), { ...options, fillOpacity: 0.15 }).addTo(this.group)];
  }

  #corners({ lo, hi }) {
    const turn = turnTowards((lo[0] + hi[0]) / 2, this.map.getCenter().lng);
    const corners = [
      [lo[0], lo[1]],
      [hi[0], lo[1]],
      [hi[0], hi[1]],
      [lo[0], hi[1]],
      [lo[0], lo[1]],
    ];
    return corners.map(([lon, lat]) => this.L.latLng(lat, lon + turn));
  }

  #latLng([lon, lat]) {
    return this.L.latLng(lat, lon + turnTowards(lon, this.map.getCenter().lng));
  }

  #options(colour) {
    return { renderer: this.renderer, pane: "history", interactive: false, color: colour, fillColor: colour };
  }
}
