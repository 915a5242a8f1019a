// The handles of a range with a focus. The user drags them, or moves the keyboard focus to one and presses the arrow keys.

import { dragged, LONGEST_M, lengthOf, stepped } from "../around.js";
import { length } from "../format.js";
import { focusText } from "../kinds/words.js";
import { filled, gettext } from "../i18n.js";

const LABELS = {
  radius: gettext("Radius"),
  farthest: gettext("Farthest"),
  across: gettext("To east and west"),
  along: gettext("To north and south"),
};
const ARROWS = { ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowLeft: [-1, 0], ArrowDown: [0, -1] };
const LARGE = 10; // steps, with Shift
const STEP_PX = 5; // how far a step moves a place

export class AroundHandles {
  L;
  map;
  plan;
  at;
  changed;
  draft;
  save;
  onDrag;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {Record<string, any>} parts `plan()`, the drawn plan, and `at()`, its place; `changed()`, whether it is not saved yet;
   *   `draft(plan)`, which draws another plan, or for null the saved one; `save()`, which saves the drawn plan; `onDrag(on)`
   */
  constructor(L, map, parts) {
    Object.assign(this, { L, map, ...parts });
    this.markers = new Map();
  }

  /**
   * Show handles at places, by name. Their labels name the query by its title, if it has one. A handle that is not
   * `visible(name, place)` shows only while it has the focus.
   */
  show(places, { title, colour, visible }) {
    for (const name of this.markers.keys()) if (!(name in places)) this.#remove(name);
    for (const [name, place] of Object.entries(places)) {
      if (!this.markers.has(name)) this.#make(name, place);
      const marker = this.markers
        .get(name)
        .setLatLng(latLng(place))
        .setOpacity(visible(name, place) ? 1 : 0);
      const element = marker.getElement();
      element.style.setProperty("--accent", colour);
      this.#describe(element, name, title);
      if (marker.isTooltipOpen()) marker.setTooltipContent(this.#words(name));
    }
  }

  remove() {
    this.abort?.abort();
    for (const name of this.markers.keys()) this.#remove(name);
  }

  #remove(name) {
    const marker = this.markers.get(name);
    this.markers.delete(name);
    marker.remove();
  }

  #make(name, place) {
    const icon = this.L.divIcon({
      className: `handle around-handle handle-${name}`,
      iconSize: name === "place" ? [18, 18] : [13, 13],
    });
    const marker = this.L.marker(latLng(place), { icon, keyboard: false }).addTo(this.map);
    this.markers.set(name, marker);
    marker.bindTooltip("", { direction: "top", offset: [0, -8], className: "reach" });
    marker.on("tooltipopen", () => marker.setTooltipContent(this.#words(name)));
    const element = marker.getElement();
    element.addEventListener("pointerdown", (event) => this.#drag(event, name));
    if (name === "both") return; // the handles next to it do the same by keyboard
    element.tabIndex = 0;
    element.addEventListener("keydown", (event) => this.#key(event, name));
    element.addEventListener("focus", () => marker.openTooltip());
    element.addEventListener("blur", () => {
      marker.closeTooltip();
      if (this.markers.get(name) === marker && this.changed()) this.save();
    });
  }

  /** Describe a handle and its value to assistive technology. */
  #describe(element, name, query) {
    const metres = lengthOf(this.plan(), name);
    const ofQuery = (what) => (query ? filled(gettext("%(what)s of %(query)s"), { what, query }) : what);
    const about = metres
      ? {
          role: "slider",
          "aria-label": ofQuery(LABELS[name]),
          "aria-valuemin": 1,
          "aria-valuemax": LONGEST_M,
          "aria-valuenow": metres,
          "aria-valuetext": length(metres),
        }
      : {
          role: "button",
          "aria-label": `${ofQuery(gettext("Place"))}, ${this.#words(name)}`,
          "aria-roledescription": gettext("place that the arrow keys move"),
        };
    if (name === "both") return element.setAttribute("aria-hidden", "true");
    for (const [attribute, value] of Object.entries(about)) element.setAttribute(attribute, value);
  }

  #words(name) {
    const { around, max_distance: farthest } = this.plan();
    if (name === "place") return focusText(around);
    if (name === "radius" || name === "farthest") return length(around.radius ?? farthest);
    return around.half_widths
      .slice(0, 2)
      .filter(Boolean)
      .map((half) => length(2 * half))
      .join(" \u00d7 ");
  }

  #key(event, name) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow) this.draft(this.#nudged(name, arrow, event.shiftKey ? LARGE : 1));
    else if (event.key === "Enter") this.save();
    else if (event.key === "Escape" && this.changed()) this.draft(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #nudged(name, [right, up], steps) {
    const plan = this.plan();
    if (name !== "place") return stepped(plan, name, steps * (right + up));
    const from = this.map.latLngToContainerPoint(latLng(this.at()));
    const { lng, lat } = this.map.containerPointToLatLng(from.add([right * steps * STEP_PX, -up * steps * STEP_PX]));
    return dragged(plan, this.at(), name, [lng, lat]);
  }

  #drag(event, name) {
    if (event.button !== 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.map.dragging.disable();
    const before = this.plan();
    const marker = this.markers.get(name);
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    const { signal } = abort;
    marker.openTooltip();
    this.onDrag(true);
    const end = (kept) => {
      abort.abort();
      setTimeout(() => this.onDrag(false)); // after the click event that follows the release of the pointer
      this.map.dragging.enable();
      marker.closeTooltip();
      if (!kept) this.draft(null);
      else if (this.changed()) this.save();
    };
    const move = (pointer) => {
      const { lng, lat } = this.map.mouseEventToLatLng(pointer);
      this.draft(dragged(before, this.at(), name, [lng, lat]));
    };
    window.addEventListener("pointermove", move, { signal });
    window.addEventListener("pointerup", () => end(true), { signal });
    window.addEventListener("pointercancel", () => end(false), { signal });
  }
}

function latLng([lon, lat]) {
  return [lat, lon];
}
