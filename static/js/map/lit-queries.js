// Chooses the queries whose shapes are lit: the one under the pointer, on the map or in the list, and those whose cards are open.

import { coalesced } from "../dom.js";

const TELL_MS = 100; // a list of a thousand cards changes many times a second

/**
 * @param {Record<string, any>} map Leaflet's map
 * @param {HTMLElement} list of cards, each with its number in `data-query`
 * @param {Record<string, any>} parts `at([lon, lat])`, the number of the query whose shape is there; `onChange(numbers)`, called with the set
 *   of lit queries when it changes
 */
export function createLitQueries(map, list, { at, onChange }) {
  let pointed;
  let open = [];
  let before = "";
  const numberOf = (element) => Number(element.dataset.query);
  const tell = () => {
    const lit = new Set(pointed === undefined ? open : [...open, pointed]);
    const text = [...lit].sort().join();
    if (text === before) return;
    before = text;
    onChange(lit);
  };
  const point = (number) => {
    pointed = number;
    tell();
  };
  map.on("mousemove", ({ latlng }) => point(at([latlng.lng, latlng.lat])));
  map.on("mouseout", () => point(undefined));
  list.addEventListener("pointerover", ({ target }) => {
    const card = target.closest("[data-query]");
    point(card ? numberOf(card) : undefined);
  });
  list.addEventListener("pointerleave", () => point(undefined));
  const look = coalesced(() => {
    open = [...list.querySelectorAll('[aria-expanded="true"]')].map((part) => numberOf(part.closest("[data-query]")));
    tell();
  }, TELL_MS);
  new MutationObserver(look).observe(list, { subtree: true, attributeFilter: ["aria-expanded"] });
  new MutationObserver(look).observe(list, { childList: true });
}
