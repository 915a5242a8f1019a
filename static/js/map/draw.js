// Draws and edits a rectangle with mouse, finger or pen. The form's number fields do the same by keyboard.

import { onEscape } from "../page-events.js";
import { forget, stepped } from "./undo.js";

const HANDLES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];
const SMALLEST_PX = 6;

export class RectangleEditor {
  L;
  map;
  colour;
  onChange;

  /**
   * @param {Record<string, any>} L Leaflet
   * @param {Record<string, any>} map Leaflet's map
   * @param {Record<string, any>} parts `colour()`
   */
  constructor(L, map, { colour }) {
    Object.assign(this, { L, map, colour, onChange: null });
    this.drawing = false;
    this.rectangle = null;
    const container = map.getContainer();
    container.addEventListener("pointerdown", (event) => this.drawing && this.#begin(event), true);
    onEscape("rectangle", () => this.active && (this.stop(), true));
  }

  get active() {
    return this.drawing || this.rectangle !== null;
  }

  /**
   * Return the editor for one of its users, as an object with `draw()`, `edit(rectangle)`, `stop()` and `active`. `draw` and
   * `edit` take it over from the other users; `onChange(rectangle)` is called while the rectangle changes.
   */
  sharedBy(onChange) {
    const editor = this;
    const mine = () => editor.onChange === onChange;
    const taken = () => {
      editor.onChange = onChange;
      return editor;
    };
    return {
      draw: () => taken().draw(),
      edit: (rectangle) => taken().edit(rectangle),
      stop: () => mine() && editor.stop(),
      get active() {
        return mine() && editor.active;
      },
    };
  }

  /** Wait for the user to drag a rectangle. */
  draw() {
    this.stop();
    this.drawing = true;
    this.map.dragging.disable();
    this.map.boxZoom.disable();
    this.map.getContainer().classList.add("drawing");
  }

  /** Show a rectangle `{west, south, east, north}` with handles. */
  edit(rectangle) {
    this.stop();
    this.rectangle = rectangle;
    this.shape = this.L.rectangle(this.#latLngs(), {
      color: this.colour(),
      weight: 2,
      fillOpacity: 0.12,
      className: "edited",
    });
    this.shape.addTo(this.map);
    this.shape.getElement().addEventListener("pointerdown", (event) => this.#drag(event, "whole"));
    this.handles = HANDLES.map((name) => {
      const handle = this.L.marker([0, 0], {
        icon: this.L.divIcon({ className: `handle handle-${name}`, iconSize: [14, 14] }),
        keyboard: false,
      }).addTo(this.map);
      handle.getElement().addEventListener("pointerdown", (event) => this.#drag(event, name));
      return { name, handle };
    });
    this.#place();
  }

  stop() {
    forget(this);
    this.drawing = false;
    this.rectangle = null;
    this.abort?.abort();
    this.abort = null;
    this.shape?.remove();
    this.shape = null;
    for (const { handle } of this.handles ?? []) handle.remove();
    this.handles = [];
    this.map.dragging.enable();
    this.map.boxZoom.enable();
    this.map.getContainer().classList.remove("drawing");
  }

  #begin(event) {
    if (event.button !== 0 || event.target.closest(".leaflet-control")) return;
    event.preventDefault();
    const start = this.#at(event);
    const draft = this.L.rectangle([start, start], {
      color: this.colour(),
      weight: 2,
      fillOpacity: 0.12,
      interactive: false,
    });
    draft.addTo(this.map);
    const from = [event.clientX, event.clientY];
    this.#track(
      (move) => draft.setBounds([start, this.#at(move)]),
      (end) => {
        draft.remove();
        if (!end || Math.hypot(end.clientX - from[0], end.clientY - from[1]) < SMALLEST_PX) return;
        this.edit(ordered(start, this.#at(end)));
        this.onChange(this.rectangle);
      },
    );
  }

  #drag(event, name) {
    if (event.button !== 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.map.dragging.disable();
    const start = this.#at(event);
    const before = this.rectangle;
    this.#track(
      (move) => {
        this.#change(dragged(before, name, this.#at(move).lng - start.lng, this.#at(move).lat - start.lat));
      },
      () => {
        if (this.rectangle !== before) stepped(this, () => this.#change(before));
        this.#change(normal(this.rectangle));
        this.map.dragging.enable();
      },
    );
  }

  #change(rectangle) {
    this.rectangle = rectangle;
    this.#place();
    this.onChange(rectangle);
  }

  /** Follow the pointer until it is released; `end` gets null if the gesture was cancelled. */
  #track(move, end) {
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    const { signal } = abort;
    const finish = (event) => {
      abort.abort();
      end(event);
    };
    window.addEventListener("pointermove", move, { signal });
    window.addEventListener("pointerup", finish, { signal });
    window.addEventListener("pointercancel", () => finish(null), { signal });
  }

  #at(event) {
    return this.map.mouseEventToLatLng(event);
  }

  #latLngs() {
    const { west, south, east, north } = this.rectangle;
    return [
      [south, west],
      [north, east],
    ];
  }

  #place() {
    const { west, south, east, north } = this.rectangle;
    this.shape.setBounds(this.#latLngs());
    for (const { name, handle } of this.handles) {
      const lng = name.includes("w") ? west : name.includes("e") ? east : (west + east) / 2;
      const lat = name.includes("n") ? north : name.includes("s") ? south : (south + north) / 2;
      handle.setLatLng([lat, lng]);
    }
  }
}

function ordered(a, b) {
  return normal({ west: a.lng, south: a.lat, east: b.lng, north: b.lat });
}

function normal({ west, south, east, north }) {
  return {
    west: Math.min(west, east),
    south: Math.min(south, north),
    east: Math.max(west, east),
    north: Math.max(south, north),
  };
}

function dragged(rectangle, name, dLng, dLat) {
  const { west, south, east, north } = rectangle;
  const whole = name === "whole";
  return {
    west: whole || name.includes("w") ? west + dLng : west,
    east: whole || name.includes("e") ? east + dLng : east,
    south: whole || name.includes("s") ? south + dLat : south,
    north: whole || name.includes("n") ? north + dLat : north,
  };
}
