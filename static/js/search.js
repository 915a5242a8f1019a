// Find an object among those on the map by its name or key.

import { $, debounced, h } from "./dom.js";
import { title } from "./format.js";

const SHOWN = 8;

/** @param {function} onPick called with the slot */
export function createSearch(store, onPick) {
  const input = $("search");
  const list = $("search-results");
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  };
  const pick = (slot) => {
    close();
    input.value = "";
    onPick(slot);
    $("map").focus({ preventScroll: true }); // what is typed next is for the map
  };
  const render = () => {
    const text = input.value.trim().toLowerCase();
    const found = text ? matches(store.objects, text) : [];
    list.replaceChildren(...found.map((slot) => option(store, slot, pick)));
    if (text && found.length === 0) list.append(h("li", { class: "hint" }, "Nothing on the map has this name. Try a part of it, or zoom out."));
    list.hidden = !text;
    input.setAttribute("aria-expanded", String(!list.hidden));
  };
  input.addEventListener("input", debounced(render, 120));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "ArrowDown") list.querySelector("button")?.focus();
    if (event.key === "Enter") list.querySelector("button")?.click();
  });
  list.addEventListener("keydown", ({ key, target }) => {
    const item = target.closest("li");
    if (key === "ArrowDown") item.nextSibling?.firstChild.focus?.();
    if (key === "ArrowUp") (item.previousSibling?.firstChild ?? input).focus();
    if (key === "Escape") {
      close();
      input.focus();
    }
  });
  document.addEventListener("pointerdown", ({ target }) => !target.closest(".search") && close());
}

function matches(objects, text) {
  const found = [];
  for (let slot = 0; slot < objects.size && found.length < SHOWN; slot++) {
    if (!objects.alive[slot]) continue;
    const likely = objects.keys[slot].toLowerCase().includes(text) || objects.texts[slot].toLowerCase().includes(text);
    if (likely && `${objects.keys[slot]} ${title("", objects.properties(slot))}`.toLowerCase().includes(text)) found.push(slot);
  }
  return found;
}

function option({ objects, streams }, slot, pick) {
  const stream = objects.streams[slot];
  return h("li", {}, h("button", { type: "button", class: "quiet", onclick: () => pick(slot) },
    h("span", {}, title(objects.keys[slot], objects.properties(slot))),
    h("span", { class: "hint" }, `${streams.get(stream)?.title ?? stream} \u00b7 ${objects.keys[slot]}`)));
}
