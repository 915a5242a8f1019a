// Draws a circle with mouse, finger or pen: from its centre outwards. A tap without a drag takes the radius that is given.

import { length } from "../format.js";
import { apart, wholeLength } from "../shapes.js";

const SMALLEST_PX = 6;

export class CircleDrawing {
  L;
  map;
  onCircle;
  onEnd;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {Record<string, any>} parts `onCircle(center, radiusM)`, called while the circle grows, without a radius after a tap; `onEnd()`
   */
  constructor(L, map, parts) {
    Object.assign(this, { L, map, ...parts, waiting: false });
    map.getContainer().addEventListener("pointerdown", (event) => this.waiting && this.#begin(event), true);
  }

  /** Wait for the user to press where the centre is. */
  draw() {
    this.waiting = true;
    this.map.dragging.disable();
    this.map.boxZoom.disable();
    this.map.getContainer().classList.add("drawing-circle");
  }

  stop() {
    if (!this.waiting && !this.abort) return;
    this.waiting = false;
    this.abort?.abort();
    this.abort = null;
    this.tip?.remove();
    this.map.dragging.enable();
    this.map.boxZoom.enable();
    this.map.getContainer().classList.remove("drawing-circle");
  }

  #begin(event) {
    if (event.button !== 0 || event.target.closest(".leaflet-control")) return;
    event.preventDefault();
    event.stopPropagation();
    this.waiting = false;
    const center = this.#at(event);
    const from = [event.clientX, event.clientY];
    const far = (pointer) => Math.hypot(pointer.clientX - from[0], pointer.clientY - from[1]) >= SMALLEST_PX;
    this.tip = this.L.tooltip({ direction: "top", offset: [0, -10], className: "reach", permanent: true });
    const abort = (this.abort = new AbortController());
    const { signal } = abort;
    window.addEventListener(
      "pointermove",
      (move) => {
        if (!far(move)) return;
        const [lon, lat] = this.#at(move);
        const radius = wholeLength(apart(center, [lon, lat]));
        this.onCircle(center, radius);
        this.tip.setLatLng([lat, lon]).setContent(length(radius)).addTo(this.map);
      },
      { signal },
    );
    window.addEventListener(
      "pointerup",
      (end) => {
        if (!far(end)) this.onCircle(center);
        this.stop();
        this.onEnd();
      },
      { signal },
    );
    window.addEventListener(
      "pointercancel",
      () => {
        this.stop();
        this.onEnd();
      },
      { signal },
    );
  }

  #at(event) {
    const { lng, lat } = this.map.mouseEventToLatLng(event);
    return [lng, lat];
  }
}
