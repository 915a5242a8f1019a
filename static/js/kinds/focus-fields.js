// The fields of the query form for the focus of a query: an object, or a fixed place.

import { $, offer } from "../dom.js";
import { title } from "../format.js";
import { gettext } from "../i18n.js";

const MOST_NAMES = 200;

export class FocusFields {
  store;
  form;
  center;

  /** @param {Record<string, any>} parts `store`; `form`, the query form's element; `center()`, the middle of the map as [longitude, latitude] */
  constructor({ store, form, center }) {
    Object.assign(this, { store, form, center });
    form.addEventListener("change", ({ target }) => {
      if (target.name === "focus" && target.value === "place" && !this.#place()) this.#setPlace(this.center());
      if (["focusStream", "focus"].includes(target.name)) this.#names();
    });
    $("focus-selected").addEventListener("click", () => this.#take());
    $("focus-middle").addEventListener("click", () => {
      this.#setPlace(this.center());
      form.elements.focusLon.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }

  get first() {
    return { focus: this.#fixed ? "focusLon" : "focusKey" };
  }

  get #fixed() {
    return this.form.elements.focus.value === "place";
  }

  /** Show the focus of a plan; without one, the selected object or the middle of the map. */
  start(plan) {
    const { elements } = this.form;
    const { selected } = this.store;
    const around = plan.around ?? (selected ? { ...selected } : { at: this.center() });
    elements.focus.value = around.at ? "place" : "object";
    this.offer(around.stream ?? selected?.stream ?? plan.stream ?? "");
    elements.focusKey.value = around.key ?? "";
    if (around.at) this.#setPlace(around.at);
    else for (const name of ["focusLon", "focusLat"]) elements[name].value = "";
    this.#names();
  }

  /** Offer the streams that there are now. */
  offer(chosen) {
    offer(
      this.form.elements.focusStream,
      [["", [...this.store.streams.values()].map(({ name, title: text }) => [name, text ?? name])]],
      chosen,
    );
  }

  setRange({ around: { at } }) {
    if (at) this.#setPlace(at);
  }

  /** Return the focus as `around`; its place is null as long as it is not written. */
  read() {
    const { elements } = this.form;
    if (this.#fixed) return { around: { at: this.#place() } };
    return { around: { stream: elements.focusStream.value, key: elements.focusKey.value.trim() } };
  }

  /** @returns {Record<string, string>} */
  errors() {
    const { at, key } = /** @type {Record<string, any>} */ (this.read().around);
    if (at === null) return { focus: gettext("Type a longitude and a latitude.") };
    return key === "" ? { focus: gettext("Type the key of an object, or use the selected object.") } : {};
  }

  show(visible) {
    $("around-fields").hidden = !visible;
    $("focus-object").hidden = this.#fixed;
    $("focus-place").hidden = !this.#fixed;
    $("focus-selected").disabled = !this.store.selected;
  }

  #place() {
    const place = ["focusLon", "focusLat"].map((name) => this.form.elements[name].valueAsNumber);
    return place.every(Number.isFinite) ? place : null;
  }

  #setPlace([lon, lat]) {
    this.form.elements.focusLon.value = Math.round(lon * 1e5) / 1e5;
    this.form.elements.focusLat.value = Math.round(lat * 1e5) / 1e5;
  }

  #take() {
    const { selected } = this.store;
    if (!selected) return;
    this.form.elements.focus.value = "object";
    this.offer(selected.stream);
    this.form.elements.focusKey.value = selected.key;
    this.form.elements.focusKey.dispatchEvent(new Event("input", { bubbles: true }));
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
}
