// Finds an object on the map by its name or key. A combobox: the focus stays in the text while the user chooses an option.

import { $, debounced, h, setText } from "./dom.js";
import { title } from "./format.js";
import { gettext } from "./i18n.js";

const SHOWN = 8;
const WAIT_MS = 120;

/** @param {(...values: any[]) => any} onPick called with the slot */
export function createSearch(store, onPick) {
  return new Search(store, onPick);
}

class Search {
  store;
  onPick;
  input;
  box;
  list;

  constructor(store, onPick) {
    Object.assign(this, { store, onPick, input: $("search"), box: $("search-box"), list: $("search-results") });
    this.due = false; // the text changed since the options were made
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
    const text = this.input.value.trim().toLowerCase();
    if (!text) return this.#close();
    this.due = false;
    const found = matches(this.store.objects, text);
    this.list.replaceChildren(...found.map((slot, i) => createOption(this.store, slot, i)));
    this.list.hidden = found.length === 0;
    this.box.hidden = false;
    setText(
      $("search-none"),
      this.list.hidden ? gettext("Nothing on the map has this name. Try a part of it, or zoom out.") : "",
    );
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.#mark(0);
  }

  #close() {
    this.due = false;
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
    this.#close();
    this.input.value = "";
    this.onPick(Number(option.dataset.slot));
    $("map").focus({ preventScroll: true }); // what is typed next is for the map
  }
}

function matches(objects, text) {
  const found = [];
  for (let slot = 0; slot < objects.size && found.length < SHOWN; slot++) {
    if (!objects.alive[slot]) continue;
    const likely = objects.keys[slot].toLowerCase().includes(text) || objects.texts[slot].toLowerCase().includes(text);
    if (likely && `${objects.keys[slot]} ${title("", objects.properties(slot))}`.toLowerCase().includes(text))
      found.push(slot);
  }
  return found;
}

function createOption({ objects, streams }, slot, i) {
  const stream = objects.streams[slot];
  const name = title(objects.keys[slot], objects.properties(slot));
  const about = `${streams.get(stream)?.title ?? stream} \u00b7 ${objects.keys[slot]}`;
  return h(
    "li",
    { role: "option", id: `search-option-${i}`, "data-slot": slot, title: `${name}\n${about}` },
    h("span", {}, name),
    h("span", { class: "hint" }, about),
  );
}
