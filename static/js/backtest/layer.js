// Marks on the map where a back-test would have told something.

import { pageEvents } from "../page-events.js";
import { placeOfRow } from "./words.js";

const RADIUS_PX = 6;

export class BacktestLayer {
  L;
  colour;

  /** @param {Record<string, any>} L Leaflet; @param {Record<string, any>} map Leaflet's map; @param {(...values: any[]) => any} colour of the marks */
  constructor(L, map, colour) {
    Object.assign(this, { L, map, colour });
    map.createPane("backtest").style.zIndex = 447;
    this.group = L.layerGroup().addTo(map);
    this.marks = [];
    this.chosen = -1;
    pageEvents.on("theme", () => this.#recolour());
  }

  /** Mark the places of rows; `onPick(index)` when one is clicked. */
  show(rows, onPick) {
    this.group.clearLayers();
    this.chosen = -1;
    this.marks = rows.map((row, index) => {
      const place = placeOfRow(row);
      if (!place) return null;
      return this.L.circleMarker([place[1], place[0]], { pane: "backtest", ...this.#style(false) })
        .on("click", () => onPick(index))
        .addTo(this.group);
    });
  }

  /** Let one mark stand out. */
  choose(index) {
    this.marks[this.chosen]?.setStyle(this.#style(false)).setRadius(RADIUS_PX);
    this.chosen = index;
    this.marks[index]
      ?.setStyle(this.#style(true))
      .setRadius(RADIUS_PX * 1.7)
      .bringToFront();
  }

  #recolour() {
    this.marks.forEach((mark, index) => mark?.setStyle(this.#style(index === this.chosen)));
  }

  #style(chosen) {
    const color = this.colour();
    return { color, weight: chosen ? 4 : 2, radius: RADIUS_PX, fillColor: color, fillOpacity: chosen ? 0.15 : 0.45 };
  }
}
