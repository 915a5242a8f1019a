// Shows the base map that the user chose last, and the hint of what can be added where it has nothing more to show.

import { $ } from "../dom.js";
import { recall, remember } from "../remembered.js";
import { tried } from "../toasts.js";

/** Show the remembered base map. Return its number, `first`, and `show(index)`, which shows another one and remembers it. */
export function createBaseChoice(map) {
  const first = map.firstBase(recall("base"));
  const hint = () => {
    $("base-hint").hidden = !map.bare;
  };
  const show = async (index) => {
    if (index !== map.firstBase(recall("base"))) remember("base", map.baseNames[index]);
    hint();
    await tried(map.setBase(index));
    hint();
  };
  map.leaflet.on("zoomend", hint);
  show(first);
  return { first, show };
}
