// The Leaflet map: panes, base layers, the rectangles of queries, and flying to places. For Leaflet, latitude comes first.

import { createBaseLayer } from "./base-layer.js";
import { firstOf, layerOf, needsGround } from "./base-maps.js";
import { createObjectLayer } from "./canvas-layer.js";
import { lessMotion } from "../dom.js";
import { DrawnArea } from "./drawn-area.js";
import { smallestAround } from "./labels.js";
import { DASHES } from "../looks.js";
import { MovingLayer } from "./moving-layer.js";
import { createPlaceNames } from "./place-names-layer.js";
import { boxOf, shapedArea } from "../kinds/plan.js";
import { QueryNames } from "./query-names.js";
import { createScale } from "./scale.js";
import { latitudeOf, longitudeOf, rectangleOf, turnTowards, wrapLongitude } from "../geometry.js";
import { filled, gettext } from "../i18n.js";
import { pageEvents } from "../page-events.js";

// Only shown if the user chooses it, so that the map works offline.
const OSM = {
  name: "OpenStreetMap (online)",
  title: gettext("OpenStreetMap (online)"),
  kind: "xyz",
  url: "https://tile.openstreetmap.org/{z}/{x}/{y}.png",
  credit: filled(gettext("&copy; %(source)s contributors"), {
    source: '<a href="https://www.openstreetmap.org/copyright">OpenStreetMap</a>',
  }),
  min_zoom: 0,
  max_zoom: 19,
};
const STREETS_FROM_ZOOM = 12; // from here on, the built-in map has nothing more to show
const LAT_LIMIT = 85;
const DRAWN = ["plan", "status", "name", "colour", "line"]; // of a query, what its shape shows
const FREE = 100_000; // degrees of longitude: enough for any number of turns round the world

export class MonitorMap {
  L;
  store;
  palette;
  baseUrls;
  isDark;
  rectangles = new Map();
  chosen = 0; // the number of the base map

  /**
   * @param {HTMLElement} element that the django-leaflet template tag made
   * @param {Record<string, any>} parts `L`, `store`, `palette()`, `now()`, `hidden(stream)`, `baseUrls`, `baseMaps`, `isDark()`, `onBase()`;
   *   `onPlan(query, plan)`, returning a promise of the saved edit; `start`, the first view or null; and what `createObjectLayer` takes
   */
  constructor(element, parts) {
    const { L, store, start } = parts;
    Object.assign(this, parts);
    const djoptions = JSON.parse(element.dataset.djoptions);
    this.added = [...parts.baseMaps, OSM];
    djoptions.layers = [];
    djoptions.extent = null; // the user may pan round the world
    djoptions.resetview = false;
    djoptions.scale = null;
    this.leaflet = L.Map.djangoMap(element.id, {
      djoptions,
      globals: false,
      zoomControl: false,
      fadeAnimation: false,
      zoomAnimation: !lessMotion(),
      inertia: !lessMotion(),
      maxBounds: [
        [-LAT_LIMIT, -FREE],
        [LAT_LIMIT, FREE],
      ],
      maxBoundsViscosity: 1,
    });
    if (start) this.leaflet.setView([start.lat, start.lon], start.zoom);
    const zoom = { zoomInTitle: gettext("Zoom in"), zoomOutTitle: gettext("Zoom out") };
    L.control.zoom({ position: "bottomright", ...zoom }).addTo(this.leaflet);
    // The bar is at least half as wide as its maximum, which leaves room for its longest text, "10000 km".
    this.scale = createScale(L, { position: "bottomright", maxWidth: 160 }).addTo(this.leaflet);
    this.leaflet.createPane("objects").style.zIndex = 450;
    this.ground = createBaseLayer(L, parts.baseUrls, parts.palette).addTo(this.leaflet);
    this.places = createPlaceNames(L, parts.baseUrls, parts.palette).addTo(this.leaflet);
    this.objects = createObjectLayer(L, store, { ...parts, taken: () => this.#taken() }).addTo(this.leaflet);
    this.names = new QueryNames(L, this.leaflet);
    this.lit = new Set(); // numbers of the queries whose shapes are filled
    const lit = (number) => this.lit.has(number);
    this.moving = new MovingLayer(L, this.leaflet, {
      store,
      palette: parts.palette,
      now: parts.now,
      onChange: parts.onPlan,
      names: this.names,
      lit,
    });
    this.leaflet.on("moveend", () => this.placeRectangles());
    pageEvents.on("theme", () => this.#recolour());
    pageEvents.on("units", () => this.#showUnits());
  }

  /** Names of the base maps, by which the browser remembers one; the first is the offline one. */
  get baseNames() {
    return ["Natural Earth (offline)", ...this.added.map(({ name }) => name)];
  }

  /** What the base maps are called on the page. */
  get baseTitles() {
    return [gettext("Natural Earth (offline)"), ...this.added.map(({ name, title }) => title ?? name)];
  }

  /** Return the number of the base map to begin with. */
  firstBase(remembered) {
    return firstOf(this.baseNames, this.added, remembered);
  }

  /** Whether the built-in map is shown, at a zoom at which it has nothing more to show. */
  get bare() {
    return this.chosen === 0 && this.leaflet.getZoom() >= STREETS_FROM_ZOOM;
  }

  /** Show a base map, given its number; the promise resolves once it is shown. */
  async setBase(index) {
    this.chosen = index;
    const base = this.added[index - 1];
    const layer = base ? await layerOf(this.L, base, { vectorsUrl: this.baseUrls.vectors, dark: this.isDark() }) : null;
    if (this.chosen !== index) return;
    this.shownBase?.remove();
    if (!base || needsGround(base)) this.ground.addTo(this.leaflet);
    else this.ground.remove();
    this.ground.setZIndex(0);
    if (base) this.places.remove();
    else this.places.addTo(this.leaflet);
    this.shownBase = layer?.addTo(this.leaflet) ?? null;
  }

  /** Show figures in units that were chosen. */
  #showUnits() {
    this.scale.update();
    this.moving.refresh();
  }

  /** Draw again what changes with time alone. */
  refresh() {
    this.objects.invalidate();
    this.moving.refresh();
  }

  #recolour() {
    this.ground.redraw();
    this.places.redraw();
    if (this.added[this.chosen - 1]?.format === "mvt") this.setBase(this.chosen);
    this.objects.reset();
    this.#restyle(this.rectangles.keys());
    this.moving.refresh();
  }

  bounds() {
    const bounds = this.leaflet.getBounds();
    return { west: bounds.getWest(), south: bounds.getSouth(), east: bounds.getEast(), north: bounds.getNorth() };
  }

  view() {
    const { lat, lng } = this.leaflet.getCenter();
    return { zoom: this.leaflet.getZoom(), lat, lon: wrapLongitude(lng) };
  }

  /** Fly to a place, and zoom in at least to `zoom`. */
  flyTo(lon, lat, zoom = 9) {
    if (!Number.isFinite(lon) || !Number.isFinite(lat)) return;
    const target = [lat, lon + turnTowards(lon, this.leaflet.getCenter().lng)];
    this.leaflet.flyTo(target, Math.max(this.leaflet.getZoom(), zoom), { animate: !lessMotion(), duration: 0.8 });
  }

  /** Keep a moving object in the middle. */
  follow(slot) {
    const { objects } = this.store;
    const lon = longitudeOf(objects.x[slot]);
    const center = this.leaflet.getCenter();
    const target = this.L.latLng(latitudeOf(objects.y[slot]), lon + turnTowards(lon, center.lng));
    const off = this.leaflet.latLngToContainerPoint(target).distanceTo(this.leaflet.getSize().divideBy(2));
    if (off < 2) return;
    this.leaflet.panTo(target, { animate: !lessMotion(), duration: 0.3 });
  }

  fitBox(box) {
    this.fitBounds(this.#latLngs(box));
  }

  fitBounds(bounds) {
    this.leaflet.flyToBounds(bounds, { padding: [48, 48], maxZoom: 13, animate: !lessMotion(), duration: 0.8 });
  }

  /** Show the rectangles and ranges of the listed queries, except for the query that is being edited. */
  showQueries(queries, edited) {
    this.moving.showQueries(queries, edited);
    const wanted = new Map(
      queries
        .filter((q) => q.shown && q.query !== edited && !q.plan?.polygon && boxOf(q.plan))
        .map((q) => [q.query, q]),
    );
    for (const [number, { shape }] of this.rectangles) {
      if (wanted.has(number)) continue;
      shape.remove();
      this.names.drop(number);
      this.rectangles.delete(number);
    }
    for (const [number, query] of wanted) {
      const known = this.rectangles.get(number);
      if (known && DRAWN.every((part) => known.query[part] === query[part])) continue;
      known?.shape.remove();
      const area = shapedArea(query.plan);
      const style = this.#style(query);
      const shape = (
        area ? new DrawnArea(this.L, area, style) : this.L.rectangle(this.#latLngs(boxOf(query.plan)), style)
      ).addTo(this.leaflet);
      this.rectangles.set(number, { query, shape });
      this.#name(number);
    }
    this.names.place();
  }

  /** Fill the shapes of some queries, and only these. */
  light(numbers) {
    const others = [...this.lit]
      .filter((number) => !numbers.has(number))
      .concat([...numbers].filter((number) => !this.lit.has(number)));
    this.lit = numbers;
    this.#restyle(others);
    this.moving.refresh();
  }

  /** Return the number of the query whose shape is at a place, the smallest shape of several; undefined if there is none. */
  queryAt(place) {
    const corners = ({ shape }) => shape.ring ?? shape.getLatLngs()[0].map(({ lng, lat }) => [lng, lat]);
    const rectangles = [...this.rectangles].map(([number, known]) => [number, corners(known)]);
    return smallestAround(new Map(/** @type {[number, any][]} */ ([...rectangles, ...this.moving.rings()])), place);
  }

  /** Move the rectangles to the copy of the world that is on the screen. */
  placeRectangles() {
    for (const [number, { query, shape }] of this.rectangles) {
      if (
        shape.place
          ? shape.place(this.leaflet.getCenter().lng)
          : this.#replaced(shape, this.#latLngs(boxOf(query.plan)))
      )
        this.#name(number);
    }
    this.names.place();
  }

  #replaced(rectangle, bounds) {
    if (rectangle.getBounds().equals(bounds, 0)) return false;
    rectangle.setBounds(bounds);
    return true;
  }

  #restyle(numbers) {
    for (const number of numbers) {
      if (!this.rectangles.has(number)) continue;
      const { query, shape } = this.rectangles.get(number);
      shape.setStyle(this.#style(query));
      this.#name(number);
    }
    this.names.place();
  }

  #name(number) {
    const { query, shape } = this.rectangles.get(number);
    this.names.set(number, query.name, {
      bounds: shape.getBounds(),
      colour: this.#style(query).color,
      round: Boolean(shapedArea(query.plan)),
    });
  }

  /** Return the boxes, in layer points, in which labels lie already. */
  #taken() {
    return [...this.names.boxes(), ...this.moving.rankBoxes()];
  }

  #latLngs(box) {
    const { west, south, east, north } = rectangleOf(box, this.leaflet.getCenter().lng);
    return this.L.latLngBounds([south, west], [north, east]);
  }

  #style(query) {
    const running = query.status === "running";
    const lit = this.lit.has(query.query);
    return {
      color: this.palette().queries[query.colour],
      weight: lit ? 3 : 2,
      opacity: running ? 0.95 : 0.5,
      fillOpacity: !lit || query.plan.report === "outside" ? 0 : running ? 0.1 : 0.05,
      dashArray: query.plan.report === "outside" ? "7 6" : running ? DASHES[query.line] : "2 5",
      interactive: false,
    };
  }
}
