// Writes the names of queries onto their shapes: within the shape's width, none on a shape that is too small, none over another.

import { fitted, overlap } from "./labels.js";

const SMALLEST_PX = 80; // the least width of a shape that can carry a name
const HEIGHT_PX = 18;
const INSET_PX = 6;
const MOST_PX = 260;
const TOOLS_PX = 48; // at the top of the map, where its tools are

export class QueryNames {
  map;
  L;
  shapes;

  /** @param {Record<string, any>} map Leaflet's map */
  constructor(L, map) {
    Object.assign(this, { L, map, shapes: new Map(), changed: false });
    map.createPane("query-names").style.zIndex = 440; // below the objects, which a name must not hide
    map.on("moveend", () => (this.changed = true));
  }

  /**
   * Put a name onto a shape; the next `place` writes it.
   *
   * @param {number} number of the query
   * @param {string} name
   * @param {Record<string, any>} how `bounds` in degrees, `colour`, and `round`, whether the name is on the top of a circle rather than within a corner
   */
  set(number, name, { bounds, colour, round }) {
    const known = this.shapes.get(number) ?? { marker: null, box: null, written: "" };
    if (known.name === name && known.colour === colour && known.round === round && known.bounds.equals(bounds, 0))
      return;
    this.shapes.set(number, Object.assign(known, { name, bounds, colour, round }));
    this.changed = true;
  }

  drop(number) {
    this.shapes.get(number)?.marker?.remove();
    if (this.shapes.delete(number)) this.changed = true;
  }

  /** Return the boxes, in layer points, in which names are written. */
  boxes() {
    return [...this.shapes.values()].flatMap(({ box }) => (box ? [box] : []));
  }

  /** Write the names where their shapes are now, if a shape or the view has changed. */
  place() {
    if (!this.changed) return;
    this.changed = false;
    const corner = this.map.containerPointToLayerPoint([0, 0]);
    const size = this.map.getSize();
    const view = [corner.x, corner.y + TOOLS_PX, corner.x + size.x, corner.y + size.y];
    const taken = [];
    for (const shape of this.shapes.values()) {
      const sides = this.#sides(shape.bounds);
      const room = fitted(sides, view, {
        smallest: SMALLEST_PX,
        most: MOST_PX,
        height: HEIGHT_PX,
        inset: INSET_PX,
        round: shape.round,
      });
      // A name that would begin within another one is not even written: the browser takes long to write and measure it.
      const begins = room && [room.x, room.y, room.x + 1, room.y + HEIGHT_PX];
      this.#write(shape, begins && taken.some((box) => overlap(box, begins)) ? null : room);
      if (shape.box && taken.some((box) => overlap(box, shape.box))) this.#write(shape, null);
      if (shape.box) taken.push(shape.box);
    }
  }

  #sides(bounds) {
    const [a, b] = [bounds.getNorthWest(), bounds.getSouthEast()].map((at) => this.map.latLngToLayerPoint(at));
    return [a.x, a.y, b.x, b.y];
  }

  #write(shape, room) {
    const at = room && this.map.layerPointToLatLng([room.x, room.y]);
    const wanted = room
      ? [at.lat, at.lng, room.x, room.y, room.width, shape.name, shape.colour, shape.round].join()
      : "";
    if (shape.written === wanted) return;
    shape.written = wanted;
    shape.box = null;
    if (!room) {
      shape.marker?.remove();
      shape.marker = null;
      return;
    }
    const icon = () => this.L.divIcon({ className: "query-label", html: "<span></span>", iconSize: [0, 0] });
    shape.marker ??= this.L.marker(at, {
      icon: icon(),
      pane: "query-names",
      keyboard: false,
      interactive: false,
    }).addTo(this.map);
    const element = shape.marker.setLatLng(at).getElement();
    const [text] = element.children;
    element.classList.toggle("round", shape.round);
    element.style.setProperty("--colour", shape.colour);
    text.style.maxWidth = `${room.width}px`;
    if (text.textContent !== shape.name) {
      text.textContent = shape.name;
      shape.widthPx = null;
    }
    shape.widthPx = shape.drawnPx === room.width ? (shape.widthPx ?? text.offsetWidth) : text.offsetWidth;
    shape.drawnPx = room.width;
    const left = shape.round ? room.x - shape.widthPx / 2 : room.x;
    shape.box = [left, room.y, left + shape.widthPx, room.y + HEIGHT_PX];
  }
}
