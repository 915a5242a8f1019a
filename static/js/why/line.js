// Draws the dashed line from an object to the border that decides, with its length.

import { pageEvents } from "../page-events.js";
import { borderText } from "./words.js";

const SHORT_PX = 4;
const PAD_PX = 70; // room for the label

export class BorderLine {
  L;
  map;
  colour;

  /** @param {Record<string, any>} L Leaflet; @param {Record<string, any>} map Leaflet's map; @param {(...values: any[]) => any} colour returns the colour of the line */
  constructor(L, map, colour) {
    Object.assign(this, { L, map, colour });
    this.drawn = L.layerGroup().addTo(map);
    this.line = null;
    map.on("zoomend", () => this.#draw());
    pageEvents.on("theme units", () => this.#draw());
  }

  /** Draw a line, as `lineTo` returns it; null for none. */
  show(line) {
    this.line = line;
    this.#draw();
  }

  /** Move the map such that the whole line is in view beside what covers some pixels of its right side, unless it is. */
  fit(coveredPx) {
    if (!this.line) return;
    const ends = [this.line.from, this.line.to].map(([lon, lat]) => [lat, lon]);
    const { x, y } = this.map.getSize();
    const free = this.L.bounds([PAD_PX, PAD_PX], [x - coveredPx - PAD_PX, y - PAD_PX]);
    if (ends.every((end) => free.contains(this.map.latLngToContainerPoint(end)))) return;
    this.map.fitBounds(ends, {
      paddingTopLeft: [PAD_PX, PAD_PX],
      paddingBottomRight: [coveredPx + PAD_PX, PAD_PX],
      maxZoom: this.map.getZoom(),
    });
  }

  #draw() {
    this.drawn.clearLayers();
    if (!this.line) return;
    const { L, line } = this;
    const [from, to] = [line.from, line.to].map(([lon, lat]) => L.latLng(lat, lon));
    const [start, end] = [from, to].map((place) => this.map.latLngToLayerPoint(place));
    if (start.distanceTo(end) < SHORT_PX) return;
    const style = { interactive: false, className: "why-line", color: this.colour() };
    L.polyline([from, to], { ...style, weight: 3, dashArray: "7 6" }).addTo(this.drawn);
    L.circleMarker(to, { ...style, radius: 4, weight: 2, fillOpacity: 1 }).addTo(this.drawn);
    const label = L.divIcon({ className: "why-distance", html: "", iconSize: null });
    const middle = this.map.layerPointToLatLng(start.add(end).divideBy(2));
    const marker = L.marker(middle, { icon: label, interactive: false, keyboard: false }).addTo(this.drawn);
    marker.getElement().textContent = borderText(line.distanceM);
  }
}
