// Edits the geometry of one feature on the map: draw it click by click, drag corners, add them at the middles of edges,
// remove them.

import { turnOf } from "./features.js";
import { filled, gettext } from "../i18n.js";
import { pageEvents } from "../page-events.js";
import { forget, stepped } from "../map/undo.js";
import { drawn, geometryOf, linesOf, middlesOf, opened, removePoint } from "../map/vertices.js";

const MOST_HANDLES = 400;
const ARROWS = { ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowLeft: [-1, 0], ArrowDown: [0, 1] };
const STEP_PX = 2;
const LARGE = 10; // steps, with Shift

export class FeatureEditor {
  L;
  map;
  colour;
  onChange;
  onDrag;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {Record<string, any>} parts `colour()`; `onChange()` after every step; `onDrag()`, if given, while a corner or the pointer moves
   */
  constructor(L, map, parts) {
    Object.assign(this, { L, map }, parts);
    this.shape = null;
    this.kind = null; // the type of the geometry that is being drawn
    map.on("click", ({ latlng }) => this.kind && this.#add(latlng));
    map.on("dblclick", () => this.kind && this.finish());
    map.on("moveend", () => this.shape && this.#handles());
    map.on("mousemove", ({ latlng }) => this.kind && this.points.length > 0 && this.#hover(latlng));
    document.addEventListener("keydown", (event) => this.kind && this.#key(event));
    pageEvents.on("theme", () => this.active && this.#refresh());
  }

  get active() {
    return this.shape !== null || this.kind !== null;
  }

  /** Whether the corners have no handles, since too many of them are in view. */
  get crowded() {
    return this.tooMany === true;
  }

  /** Edit a geometry. Return false if its type cannot be edited. */
  edit(geometry) {
    this.stop();
    this.turn = turnOf(geometry, this.map.getCenter().lng);
    this.shape = opened(geometry, this.turn);
    if (!this.shape) return false;
    this.#refresh();
    return true;
  }

  /** Wait for the user to draw a "Point", "LineString" or "Polygon". */
  draw(kind) {
    this.stop();
    this.kind = kind;
    this.points = [];
    this.pointer = null;
    this.turn = this.map.getCenter().lng - wrapped(this.map.getCenter().lng);
    this.map.doubleClickZoom.disable();
    this.map.getContainer().classList.add("drawing-feature");
  }

  /** Take the last corner of a drawing back. */
  undo() {
    if (!this.kind || this.points.length === 0) return;
    this.points.pop();
    this.#refresh();
  }

  /** Return the places of a drawing, the last one being where the pointer is; null while nothing is drawn. */
  sketch() {
    if (!this.kind) return null;
    return this.pointer && this.points.length > 0 ? [...this.points, this.pointer] : this.points;
  }

  /** End the drawing, unless it has too few points yet. */
  finish() {
    const shape = drawn(this.kind, this.points);
    if (!shape) return;
    const { turn } = this;
    this.stop();
    Object.assign(this, { shape, turn });
    this.#refresh();
  }

  /** The geometry as it is now; null while it is being drawn. */
  geometry() {
    return this.shape && geometryOf(this.shape, this.turn);
  }

  stop() {
    forget(this);
    this.#clear();
    this.shape = null;
    this.kind = null;
    this.tooMany = false;
    this.map.doubleClickZoom.enable();
    this.map.getContainer().classList.remove("drawing-feature");
  }

  #add({ lat, lng }) {
    const last = this.points.at(-1);
    if (last && last[0] === lng && last[1] === lat) return; // the second click of a double click
    this.points.push([lng, lat]);
    this.pointer = null;
    if (this.kind === "Point") return this.finish();
    this.#refresh();
  }

  /** Draw the edge to the pointer. */
  #hover({ lat, lng }) {
    this.pointer = [lng, lat];
    this.#outline();
    this.onDrag?.();
  }

  #key(event) {
    const undoes = event.key === "Backspace" || ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z");
    if (event.target.closest("input, textarea, select") || (!undoes && event.key !== "Enter")) return;
    if (event.key === "Enter" && event.target.closest("button, a, summary")) return;
    event.preventDefault();
    if (undoes) this.undo();
    else this.finish();
  }

  #refresh() {
    this.#outline();
    this.#handles();
    this.onChange();
  }

  /** Draw the shape itself; while it is being drawn, the line so far. */
  #outline() {
    const { L } = this;
    this.outline?.remove();
    const options = {
      color: this.colour(),
      weight: 2.5,
      fillOpacity: 0.12,
      interactive: false,
      dashArray: this.kind ? "5 5" : null,
    };
    if (this.kind) {
      const places = this.sketch().map(([lon, lat]) => [lat, lon]);
      this.outline = (this.kind === "Polygon" ? L.polygon : L.polyline)(places, options);
    } else {
      this.outline = L.GeoJSON.geometryToLayer(
        { type: "Feature", geometry: geometryOf(this.shape) },
        {
          ...options,
          coordsToLatLng: ([lon, lat]) => L.latLng(lat, lon),
          pointToLayer: (_, place) => L.circleMarker(place, { ...options, radius: 6 }),
        },
      );
      this.outline.setStyle?.(options);
    }
    this.outline.addTo(this.map);
  }

  #handles() {
    for (const handle of this.handles ?? []) handle.remove();
    this.handles = [];
    if (this.kind) {
      for (const [lon, lat] of this.points) this.#marker([lon, lat], "vertex fixed", false);
      if (this.kind === "Polygon" && this.points.length > 2) this.handles[0].on("click", () => this.finish());
      return;
    }
    const bounds = this.map.getBounds().pad(0.05);
    const inView = (/** @type {any[]} */ [lon, lat]) => bounds.contains([lat, lon]);
    const lines = linesOf(this.shape);
    const seen = lines.reduce((sum, line) => sum + line.filter(inView).length, 0);
    const before = this.tooMany;
    this.tooMany = seen > MOST_HANDLES;
    if (before !== this.tooMany) this.onChange();
    if (this.tooMany) return;
    for (const line of lines) {
      line.forEach((point, at) => inView(point) && this.#corner(line, at));
      for (const { at, place } of middlesOf(this.shape, line)) if (inView(place)) this.#middle(line, at, place);
    }
  }

  #corner(line, at) {
    const handle = this.#marker(line[at], "vertex", true);
    handle.on("dragstart", () => this.#keep());
    handle.on("drag", () => this.#put(line, at, handle));
    handle.on("dragend", () => this.#refresh());
    const remove = () => {
      const back = this.#back();
      if (!removePoint(this.shape, line, at)) return;
      stepped(this, back);
      this.#refresh();
    };
    handle.on("contextmenu dblclick", remove);
    handle.getElement().addEventListener("keydown", (event) => {
      if (event.key in ARROWS) this.#nudge(line, at, ARROWS[event.key], event.shiftKey ? LARGE : 1);
      else if (["Delete", "Backspace"].includes(event.key)) remove();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    handle.getElement().setAttribute("aria-label", filled(gettext("Corner %(number)s"), { number: at + 1 })); // Leaflet's `alt` is for images alone
    handle.getElement().dataset.corner = `${linesOf(this.shape).indexOf(line)}:${at}`;
  }

  /** Move a corner by some pixels, and keep the keyboard focus on it. */
  #nudge(line, at, [right, down], steps) {
    this.#keep();
    const [lng, lat] = line[at];
    const from = this.map.latLngToContainerPoint([lat, lng]);
    const to = this.map.containerPointToLatLng(from.add([right * steps * STEP_PX, down * steps * STEP_PX]));
    line[at] = [to.lng, to.lat];
    const corner = `${linesOf(this.shape).indexOf(line)}:${at}`;
    this.#refresh();
    this.handles
      .map((handle) => handle.getElement())
      .find((element) => element?.dataset.corner === corner)
      ?.focus();
  }

  #middle(line, at, place) {
    const handle = this.#marker(place, "vertex middle", true);
    handle.on("dragstart", () => {
      this.#keep();
      line.splice(at, 0, place);
    });
    handle.on("drag", () => this.#put(line, at, handle));
    handle.on("dragend", () => this.#refresh());
  }

  /** Remember the shape as it is, before a step. */
  #keep() {
    stepped(this, this.#back());
  }

  /** Return what brings the shape as it is now back. */
  #back() {
    const nested = structuredClone(this.shape.nested);
    return () => {
      this.shape.nested = nested;
      this.#refresh();
    };
  }

  #put(line, at, handle) {
    const { lat, lng } = handle.getLatLng();
    line[at] = [lng, lat];
    this.#outline();
    this.onDrag?.();
  }

  #marker([lon, lat], className, draggable) {
    const icon = this.L.divIcon({ className, iconSize: [12, 12] });
    const handle = this.L.marker([lat, lon], {
      icon,
      draggable,
      keyboard: className === "vertex",
      bubblingMouseEvents: false,
    });
    this.handles.push(handle.addTo(this.map));
    return handle;
  }

  #clear() {
    this.outline?.remove();
    this.outline = null;
    for (const handle of this.handles ?? []) handle.remove();
    this.handles = [];
  }
}

function wrapped(lonDeg) {
  return lonDeg - 360 * Math.round(lonDeg / 360);
}
