// An area with a shape on the map, drawn as it is: a polygon with its holes, a circle, or a corridor with its round ends.

import { turnTowards } from "../geometry.js";
import { UNROUNDED } from "./moving-layer.js";
import { boxAround, drawnAs } from "../shapes.js";

export class DrawnArea {
  area;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} area a GeoJSON polygon, a circle or a corridor, as plans have it
   * @param {Record<string, any>} style Leaflet's options of a path
   */
  constructor(L, area, style) {
    Object.assign(this, { L, area });
    this.drawn = drawnAs(area);
    this.fill = new (L.Polygon.extend(UNROUNDED))([], { fillRule: this.drawn.rule, smoothFactor: 0 });
    this.border = new (L.Polyline.extend(UNROUNDED))([], { smoothFactor: 0 });
    this.group = L.layerGroup([this.fill, this.border]);
    this.setStyle(style);
  }

  addTo(map) {
    this.place(map.getCenter().lng);
    this.group.addTo(map);
    return this;
  }

  remove() {
    this.group.remove();
  }

  setStyle(style) {
    this.fill.setStyle({ ...style, stroke: false, fill: true, fillColor: style.color });
    this.border.setStyle({ ...style, fill: false });
    return this;
  }

  /** Draw it in the copy of the world that is nearest to a longitude. Return whether it has moved. */
  place(centerLon) {
    const { lo, hi } = boxAround(this.area);
    const turn = turnTowards(lo[0] === null ? this.drawn.ring[0][0] : (lo[0] + hi[0]) / 2, centerLon);
    if (turn === this.turn) return false;
    this.turn = turn;
    const latLngs = (places) => places.map(([lon, lat]) => [lat, lon + turn]);
    this.fill.setLatLngs(this.drawn.fill.map((rings) => rings.map(latLngs)));
    this.border.setLatLngs(this.drawn.lines.map(latLngs));
    return true;
  }

  getBounds() {
    return this.border.getBounds();
  }

  /** Return the shape as one ring of `[lon, lat]`; of a corridor, that of the first edge. */
  get ring() {
    return this.drawn.ring.map(([lon, lat]) => [lon + this.turn, lat]);
  }
}
