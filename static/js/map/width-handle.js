// The handle of a corridor's width. The user drags it, or moves the keyboard focus to it and presses the arrow keys.

import { length } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { besideLongest, lineDistance, steppedLength, wholeLength } from "../shapes.js";
import { forget, stepped } from "./undo.js";

const STEPS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
const LARGE = 10; // steps, with Shift

export class WidthHandle {
  L;
  map;
  onChange;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {(...values: any[]) => any} onChange called with the new width in metres
   */
  constructor(L, map, onChange) {
    Object.assign(this, { L, map, onChange, marker: null });
  }

  /** Show the handle of a corridor `{line, width_m}`, whose line is in the copy of the world on the screen. */
  show(corridor, colour) {
    this.corridor = corridor;
    const [lon, lat] = besideLongest(corridor);
    this.marker ??= this.#made();
    this.marker.setLatLng([lat, lon]);
    const element = this.marker.getElement();
    element.style.setProperty("--accent", colour);
    element.setAttribute("aria-valuenow", corridor.width_m);
    element.setAttribute("aria-valuetext", length(corridor.width_m));
    this.marker.setTooltipContent(filled(gettext("%(width)s wide"), { width: length(corridor.width_m) }));
  }

  remove() {
    forget(this);
    this.abort?.abort();
    this.marker?.remove();
    this.marker = null;
  }

  #made() {
    const icon = this.L.divIcon({ className: "handle around-handle handle-width", iconSize: [13, 13] });
    const marker = this.L.marker([0, 0], { icon, keyboard: false, zIndexOffset: 1000 }).addTo(this.map);
    marker.bindTooltip("", { direction: "top", offset: [0, -8], className: "reach" });
    const element = marker.getElement();
    element.tabIndex = 0;
    element.setAttribute("role", "slider");
    element.setAttribute("aria-label", gettext("Width of the corridor"));
    element.setAttribute("aria-valuemin", 1);
    element.addEventListener("pointerdown", (event) => this.#drag(event));
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("focus", () => marker.openTooltip());
    element.addEventListener("blur", () => marker.closeTooltip());
    return marker;
  }

  #key(event) {
    if (!(event.key in STEPS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const { width_m: before } = this.corridor;
    this.onChange(steppedLength(before, STEPS[event.key] * (event.shiftKey ? LARGE : 1)));
    this.#keep(before);
  }

  /** Remember the width that was before a step, if it is another one now. */
  #keep(width) {
    if (this.corridor.width_m !== width) stepped(this, () => this.onChange(width));
  }

  #drag(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.map.dragging.disable();
    this.marker.openTooltip();
    const { width_m: before } = this.corridor;
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    const { signal } = abort;
    const end = () => {
      abort.abort();
      this.#keep(before);
      this.map.dragging.enable();
      this.marker?.closeTooltip();
    };
    const move = (pointer) => {
      const { lng, lat } = this.map.mouseEventToLatLng(pointer);
      this.onChange(wholeLength(2 * lineDistance(this.corridor.line, [lng, lat])));
    };
    window.addEventListener("pointermove", move, { signal });
    window.addEventListener("pointerup", end, { signal });
    window.addEventListener("pointercancel", end, { signal });
  }
}
