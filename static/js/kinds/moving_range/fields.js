// The part of the query form for queries with a focus: the focus, and the range around it or the number of neighbours.

import { $, offer } from "../../dom.js";
import { title } from "../../format.js";
import { gettext } from "../../i18n.js";
import { measureFields } from "../../measure-field.js";
import { LENGTH } from "../../quantities.js";
import { units } from "../../units.js";

const MOST_NAMES = 200;
const STANDARD_K = 10;

export class AroundFields {
  store;
  form;
  center;

  /** @param {Record<string, any>} parts `store`; `form`, the query form's element; `center()`, the middle of the map as [longitude, latitude] */
  constructor({ store, form, center }) {
    Object.assign(this, { store, form, center });
    const lengths = { radius: LENGTH, across: LENGTH, along: LENGTH, maxDistance: LENGTH };
    this.measures = measureFields(form.elements, lengths);
    form.addEventListener("change", ({ target }) => {
      if (target.name === "focus" && target.value === "place" && !this.#place()) this.#setPlace(this.center());
      if (["focusStream", "focus"].includes(target.name)) this.#names();
      this.#arrange();
    });
    $("focus-selected").addEventListener("click", () => this.#take());
    $("focus-middle").addEventListener("click", () => {
      this.#setPlace(this.center());
      form.elements.focusLon.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }

  /** Show the focus and the range of a plan; without a focus, a standard circle around the selected object or the middle of the map. */
  start(plan) {
    const { elements } = this.form;
    const { selected } = this.store;
    const around = plan.around ?? (selected ? { ...selected } : { at: this.center() });
    this.polygon = around.polygon ?? null;
    elements.focus.value = around.at ? "place" : "object";
    this.offer(around.stream ?? selected?.stream ?? plan.stream ?? "");
    elements.focusKey.value = around.key ?? "";
    if (around.at) this.#setPlace(around.at);
    else for (const name of ["focusLon", "focusLat"]) elements[name].value = "";
    elements.shape.value = around.polygon ? "polygon" : around.half_widths ? "half_widths" : "radius";
    const widths = around.half_widths ?? [];
    this.further = widths.slice(2);
    const { radius, across, along, maxDistance } = this.measures;
    const { radiusM } = units();
    radius.show(around.radius ?? radiusM);
    across.show(around.half_widths ? widths[0] : radiusM, radiusM);
    along.show(around.half_widths ? widths[1] : radiusM, radiusM);
    maxDistance.show(plan.max_distance, radiusM);
    elements.k.value = plan.k ?? STANDARD_K;
    this.#names();
    this.#arrange();
  }

  /** Offer the streams that there are now. */
  offer(chosen) {
    offer(
      this.form.elements.focusStream,
      [["", [...this.store.streams.values()].map(({ name, title: text }) => [name, text ?? name])]],
      chosen,
    );
  }

  /** Take over the range of a plan that was changed on the map. */
  setRange({ around: { at, radius, half_widths: widths }, max_distance: farthest }) {
    if (farthest) this.measures.maxDistance.show(farthest);
    if (at) this.#setPlace(at);
    if (radius) this.measures.radius.show(radius);
    if (widths) {
      this.measures.across.show(widths[0], widths[1]);
      this.measures.along.show(widths[1], widths[0]);
    }
  }

  /** Return the focus, with the range around it unless the query asks for nearest neighbours. */
  around(nearest) {
    const { elements } = this.form;
    const place = this.#place();
    const focus =
      elements.focus.value === "place"
        ? { at: place }
        : { stream: elements.focusStream.value, key: elements.focusKey.value.trim() };
    return nearest ? focus : { ...focus, ...this.#shape() };
  }

  neighbours() {
    return { k: this.form.elements.k.valueAsNumber, max_distance: this.#length("maxDistance") };
  }

  /** What is missing, by field. */
  errors(nearest) {
    const errors = {};
    const { at, key } = this.around(true);
    if (at === null || key === "")
      errors.focus =
        at === null
          ? gettext("Type a longitude and a latitude.")
          : gettext("Type the key of an object, or use the selected object.");
    const shape = this.#shape();
    if (!nearest && (shape.radius === null || shape.half_widths?.every((width) => width === null)))
      errors.shape = gettext("Type a length above 0.");
    if (nearest && !(this.neighbours().k >= 1)) errors.k = gettext("Type a number of 1 or more.");
    return errors;
  }

  #shape() {
    const { value } = this.form.elements.shape;
    if (value === "polygon") return { polygon: this.polygon };
    if (value === "radius") return { radius: this.#length("radius") };
    return { half_widths: [this.#length("across"), this.#length("along"), ...this.further] };
  }

  #place() {
    const place = ["focusLon", "focusLat"].map((name) => this.form.elements[name].valueAsNumber);
    return place.every(Number.isFinite) ? place : null;
  }

  #setPlace([lon, lat]) {
    this.form.elements.focusLon.value = Math.round(lon * 1e5) / 1e5;
    this.form.elements.focusLat.value = Math.round(lat * 1e5) / 1e5;
  }

  #length(name) {
    const { own } = this.measures[name];
    return own > 0 ? own : null;
  }

  #take() {
    const { selected } = this.store;
    if (!selected) return;
    this.form.elements.focus.value = "object";
    this.offer(selected.stream);
    this.form.elements.focusKey.value = selected.key;
    this.form.elements.focusKey.dispatchEvent(new Event("input", { bubbles: true }));
    this.#arrange();
  }

  /** Propose the objects that are on the map. */
  #names() {
    const slots = [...(this.store.objects.byStream.get(this.form.elements.focusStream.value)?.entries() ?? [])].slice(
      0,
      MOST_NAMES,
    );
    $("focus-keys").replaceChildren(
      ...slots.map(([key, slot]) => new Option(title(key, this.store.objects.properties(slot)), key)),
    );
  }

  #arrange() {
    const { elements } = this.form;
    const nearest = elements.report.value === "nearest";
    $("focus-object").hidden = elements.focus.value !== "object";
    $("focus-place").hidden = elements.focus.value !== "place";
    $("focus-selected").disabled = !this.store.selected;
    $("shape-fields").hidden = nearest;
    $("nearest-fields").hidden = !nearest;
    $("radius-field").hidden = elements.shape.value !== "radius";
    $("widths-field").hidden = elements.shape.value !== "half_widths";
    $("polygon-field").hidden = elements.shape.value !== "polygon";
    [...elements.shape.options].find(({ value }) => value === "polygon").hidden = !this.polygon;
  }
}
