// Measures on the map: a click adds a place, a double click ends, a click on the first place closes the ring.

import { $, h, setText } from "../dom.js";
import { gettext } from "../i18n.js";
import { onEscape, pageEvents, stopDrawing } from "../page-events.js";
import { drawnPath, edgeText, measuredText, Measurement } from "./measurement.js";

const NEAR_PX = 12; // to the first place, to close the ring
const REST_PX = 3; // from the last place: nearer, the pointer has not gone on
const LABEL_FROM_PX = 60; // an edge that is shorter on the screen has no label

export class MeasureTool {
  L;
  map;
  colour;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {Record<string, any>} parts `colour()`
   */
  constructor(L, map, { colour }) {
    Object.assign(this, { L, map, colour, state: "off", pointer: null, made: new Measurement() });
    this.layers = L.layerGroup().addTo(map);
    map.createPane("measure").style.zIndex = 460; // above the objects and their names
    this.button = $("open-measure");
    this.button.addEventListener("click", () => this.toggle());
    $("measure-undo").addEventListener("click", () => this.undo());
    $("measure-close-ring").addEventListener("click", () => this.#closeRing());
    $("measure-end").addEventListener("click", () => this.end());
    $("measure-stop").addEventListener("click", () => this.stop());
    map.on("click", ({ latlng, containerPoint }) => this.active && this.#add(latlng, containerPoint));
    map.on("dblclick", () => this.active && this.end());
    map.on("mousemove", ({ latlng }) => this.active && this.#point(latlng));
    map.on("mouseout", () => this.active && this.#point(null));
    map.on("zoomend", () => this.state !== "off" && this.#redraw());
    pageEvents.on("theme units", () => this.#redraw());
    onEscape("measuring", () => this.active && this.stop());
    onEscape("measurement", () => this.stop());
    document.addEventListener("keydown", (event) => this.active && this.#key(event));
  }

  /** Whether clicks on the map are for the measurement. */
  get active() {
    return this.state === "measuring";
  }

  toggle() {
    if (this.active) this.stop();
    else this.start();
  }

  /** Begin a new measurement. */
  start() {
    stopDrawing();
    this.made = new Measurement();
    this.pointer = null;
    this.#turn("measuring");
    this.map.getContainer().focus({ preventScroll: true });
  }

  /** Take the last place back. */
  undo() {
    this.made.undo();
    this.pointer = null;
    this.#turn("measuring");
  }

  /** End the measurement, which stays on the map. */
  end() {
    if (this.made.places.length < 2) return this.stop();
    this.pointer = null;
    return this.#turn("shown");
  }

  /** Remove the measurement from the map. Return whether there was one. */
  stop() {
    if (this.state === "off") return false;
    const focused = $("measure-bar").contains(document.activeElement);
    this.#turn("off");
    if (focused) this.button.focus();
    return true;
  }

  /** Draw the measurement, and say how long it is. */
  #redraw() {
    this.layers.clearLayers();
    const edges = this.state === "off" ? [] : this.made.edges();
    const ahead = this.#ahead();
    const { L } = this;
    const style = { color: this.colour(), weight: 2.5, interactive: false, smoothFactor: 0, pane: "measure" };
    if (this.made.closed)
      L.polygon(this.#unwound(edges), { ...style, stroke: false, fillOpacity: 0.12 }).addTo(this.layers);
    for (const edge of edges) this.#edge(edge, style);
    if (ahead) this.#edge(ahead, { ...style, dashArray: "5 5" });
    if (this.state !== "off")
      for (const [lon, lat] of this.made.places)
        L.circleMarker([lat, lon], { ...style, radius: 4, fillOpacity: 1 }).addTo(this.layers);
    this.#say(ahead ? [...edges, ahead] : edges);
  }

  /** Return the edge from the last place to the pointer; undefined while there is none. */
  #ahead() {
    if (!this.active || !this.pointer) return undefined;
    const [from, to] = [this.made.places.at(-1), this.pointer].map(([lon, lat]) =>
      this.map.latLngToLayerPoint([lat, lon]),
    );
    return from.distanceTo(to) < REST_PX ? undefined : this.made.edges(this.pointer).at(-1);
  }

  #say(edges) {
    const { places, closed } = this.made;
    const hint = places.length === 0 ? gettext("Click where it begins.") : gettext("Click on the next place.");
    setText($("measure-text"), measuredText(edges, this.made.area()) || hint);
    $("measure-undo").hidden = places.length === 0;
    $("measure-close-ring").hidden = closed || places.length < 3;
    $("measure-end").hidden = !this.active || places.length < 2;
  }

  #turn(state) {
    this.state = state;
    $("measure-bar").hidden = state === "off";
    this.button.setAttribute("aria-pressed", String(state !== "off"));
    this.map.getContainer().classList.toggle("measuring", this.active);
    this.map.doubleClickZoom[this.active ? "disable" : "enable"]();
    this.#redraw();
  }

  #add({ lng, lat }, point) {
    const [first] = this.made.places;
    const near = first && point.distanceTo(this.map.latLngToContainerPoint([first[1], first[0]])) < NEAR_PX;
    if (near && this.made.places.length > 2) return this.#closeRing();
    this.made.add([lng, lat]);
    this.pointer = null;
    return this.#redraw();
  }

  #closeRing() {
    if (this.made.close()) this.end();
  }

  #point(latlng) {
    this.pointer = latlng && this.made.places.length > 0 ? [latlng.lng, latlng.lat] : null;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.#redraw();
    });
  }

  #key(event) {
    if (event.target.closest("input, textarea, select, button, a, summary, [role=grid]")) return;
    const undoes = event.key === "Backspace" || ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z");
    if (undoes) this.undo();
    else if (event.key === "Enter") this.end();
    else if (event.key === " ") this.#add(this.map.getCenter(), this.map.getSize().divideBy(2));
    else return;
    event.preventDefault();
  }

  #edge(edge, style) {
    const places = drawnPath(edge).map(([lon, lat]) => [lat, lon]);
    this.L.polyline(places, style).addTo(this.layers);
    const [from, to] = [places[0], places.at(-1)].map((place) => this.map.latLngToLayerPoint(place));
    if (from.distanceTo(to) < LABEL_FROM_PX) return;
    const middle =
      places.length > 2 ? places[Math.floor(places.length / 2)] : this.map.layerPointToLatLng(from.add(to).divideBy(2));
    const html = h("span", {}, edgeText(edge));
    this.L.marker(middle, {
      icon: this.L.divIcon({ className: "measure-label", iconSize: [0, 0], html }),
      keyboard: false,
      interactive: false,
    }).addTo(this.layers);
  }

  /** Return the ring of all edges, each place in the copy of the world nearest to the one before. */
  #unwound(edges) {
    const ring = [];
    for (const [lon, lat] of edges.flatMap((edge) => drawnPath(edge).slice(0, -1))) {
      const before = ring.at(-1)?.[1] ?? lon;
      ring.push([lat, lon + 360 * Math.round((before - lon) / 360)]);
    }
    return ring;
  }
}
