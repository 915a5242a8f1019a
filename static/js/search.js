// The search of the bar: objects, coordinates, features of layers and towns. A combobox: the focus stays in the text while the
// user chooses an option.

import { $, debounced, h, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { foundFeatures, foundObjects, foundPlaces, typedPlace } from "./search-sources.js";

const WAIT_MS = 120;

/**
 * @param {Record<string, any>} parts `store`; `api`, a LayersApi; `onObject(slot)`; `onFeature(found)`, `{layer, key, properties, lon, lat}`;
 *   `onPlace({lon, lat})`
 */
export function createSearch(parts) {
  return new Search(parts);
}

class Search {
  store;
  api;
  onObject;
  onFeature;
  onPlace;

  constructor(parts) {
    Object.assign(this, parts);
    this.input = $("search");
    this.box = $("search-box");
    this.list = $("search-results");
    this.due = false; // the text changed since the options were made
    this.asking = new AbortController();
    this.found = []; // what the options stand for
    const openLate = debounced(() => this.due && this.#open(), WAIT_MS);
    this.input.addEventListener("input", () => {
      this.due = true;
      openLate();
    });
    this.input.addEventListener("keydown", (event) => this.#key(event));
    this.input.addEventListener("focus", () => this.#open());
    this.input.addEventListener("blur", () => this.#close());
    // A press on the list must not take the focus from the text.
    this.box.addEventListener("pointerdown", (event) => event.preventDefault());
    this.list.addEventListener("click", ({ target }) => this.#take(target.closest("[role=option]")));
    document.addEventListener("pointerdown", ({ target }) => !target.closest(".search") && this.#close());
  }

  #open() {
    const text = this.input.value.trim();
    if (!text) return this.#close();
    this.due = false;
    this.found = [];
    this.list.replaceChildren();
    this.box.hidden = false;
    this.#add([...typedPlace(text), ...foundObjects(this.store, text)]);
    this.#mark(0);
    this.#ask(text);
  }

  /** Add what the server and the list of towns know, as it comes; say that nothing was found only when all have answered. */
  async #ask(text) {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.#say(gettext("Searching…"));
    const add = (found) => !signal.aborted && this.#add(found);
    await Promise.all([
      foundFeatures(this.store, this.api, text, signal).then(add),
      foundPlaces(document.body.dataset.places, text).then(add),
    ]);
    if (!signal.aborted)
      this.#say(
        gettext(
          "Nothing was found: no object on the map, no feature of a layer, no town. Try a part of the name, or zoom out.",
        ),
      );
  }

  #add(found) {
    this.list.append(...found.map((one, i) => createOption(one, this.found.length + i)));
    this.found.push(...found);
    this.list.hidden = this.found.length === 0;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    if (!this.list.querySelector("[aria-selected=true]")) this.#mark(0);
    if (this.found.length > 0) this.#say("");
  }

  #say(text) {
    setText($("search-none"), this.found.length > 0 ? "" : text);
  }

  #close() {
    this.due = false;
    this.asking.abort();
    this.box.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  #mark(number) {
    this.marked = number;
    [...this.list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === number)));
    const option = this.list.children[number];
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.input.setAttribute("aria-activedescendant", option.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const { key } = event;
    const count = this.list.children.length;
    if (event.isComposing || !["ArrowDown", "ArrowUp", "Enter", "Escape"].includes(key)) return;
    if (key === "Escape" && this.box.hidden && !this.due) return;
    event.preventDefault();
    event.stopPropagation(); // Escape ends the search, and nothing else
    if (key === "Escape") this.#close();
    else if (this.due || this.box.hidden) this.#open();
    else if (key === "ArrowDown") this.#mark((this.marked + 1) % count);
    else if (key === "ArrowUp") this.#mark((this.marked + count - 1) % count);
    if (key === "Enter") this.#take(this.list.children[this.marked]);
  }

  #take(option) {
    if (!option || this.box.hidden) return;
    const one = this.found[[...this.list.children].indexOf(option)];
    this.#close();
    this.input.value = "";
    if (one.slot !== undefined) this.onObject(one.slot);
    else if (one.layer) this.onFeature(one);
    else this.onPlace(one);
    $("map").focus({ preventScroll: true }); // what is typed next is for the map
  }
}

function createOption({ name, about }, i) {
  return h(
    "li",
    { role: "option", id: `search-option-${i}`, "aria-selected": "false", title: `${name}\n${about}` },
    h("span", {}, name),
    h("span", { class: "hint" }, about),
  );
}
